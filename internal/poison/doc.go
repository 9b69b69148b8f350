// Package poison overwrites memory that was given back, in builds with the tag
// "poison", so that a test sees who still reads it:
//
//	go test -tags poison ./sink/ ./slot/ ./decoder/ ./internal/relay/ ./test/sim/
//
// The hot path copies an event as seldom as it can, and all its buffers are used
// again. Whose they are when is written at the top of the files that own them:
//
//	slot/stream.go    a message, until the next Receive
//	sink/queue.go     a queued record, until its batch is settled
//	sink/sender.go    the bytes of a request, until its answer or for ever
//
// Without the tag Bytes is an empty function that the compiler removes.
package poison
