// Package proxy is a TCP proxy with dials for the faults of networks: cut
// connections, stalls in one or both directions, delay, a connection that breaks
// after so many bytes, a port that refuses.
//
// It knows nothing of the protocols that pass through. A stalled direction takes
// at most one more chunk from its source, so that back-pressure reaches the
// sender as it would from a stalled peer. Order and content of bytes are never
// changed.
package proxy
