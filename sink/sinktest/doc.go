// Package sinktest is the conformance suite of sink.Sink: what every sink must
// do, whatever it delivers to. A sink passes when Run passes with a function
// that opens it.
//
// It checks order per key, exactly one ack per record, that Submit copies,
// blocks and gives way to its context, that Run ends cleanly and that Status may
// be called at any time. It does not check what a sink does with faults, which
// are its own, nor goroutines left behind: let the package's TestMain do that.
package sinktest
