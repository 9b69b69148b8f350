// Package relay runs the loop: stream → decode → map → route → deliver, and the
// acknowledgements back: sink → tracker → confirm. It ties the packages slot,
// decoder, event, route, sink and checkpoint together; they do not know each
// other.
//
// The goroutines of a running relay:
//
//  1. pump (pump.go): reads the stream, decodes, maps, routes and submits. One
//     goroutine, so that order is kept by construction, and no buffer between
//     the socket and the sink. When the sink is full it blocks, the server's
//     send blocks, and that is the back-pressure.
//  2. status (package slot): tells the server that we are alive and what it may
//     forget, also while the pump is blocked.
//  3. senders, retries and metadata (package sink), which also call acked.
//  4. monitor (package slot): looks at the slot and the publication through an
//     ordinary connection.
//  5. checkpoints (recovery.go): writes what a successor needs, once a second while
//     events flow.
//  6. Run itself: opens sessions, decides what an error means, drains.
//
// Two contexts stop them. Intake ends first: no further transaction is begun,
// the one under way is finished, everything pending is delivered, the last
// position is confirmed. Delivery ends when that is done, when the drain timeout
// has passed, or at a second signal.
//
// Invariants of walpost kept here: I1 and I4 by feeding the tracker in stream
// order and confirming nothing but its mark; I3 by holding at the first message
// that cannot be decoded, mapped or routed; I6 by treating the slot's loss as an
// end that names the way out. I7 rests on the sink's limit: nothing is buffered
// here.
//
// Reconnects inside one process skip what is already in flight, by position
// (commit LSN, ordinal). A new process first makes sure that no predecessor can
// write any more, reads from Kafka what the last one delivered, and has that
// acknowledged without sending it (recovery.go); where it may not, what was in
// flight is published again with the same bytes and ids.
package relay
