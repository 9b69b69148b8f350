package socket

import "sync/atomic"

var together atomic.Bool

// ReadTogether makes connections that receive small pieces all the time read them
// once a millisecond, all connections in the same moment, so that the process
// wakes up once for all of them. A piece waits half a millisecond for that, on
// average; one that comes after a pause does not, nor does anything when much
// comes. It costs no throughput, but is meant for a process that has little to do.
// It may be called at any time.
func ReadTogether(on bool) { together.Store(on) }
