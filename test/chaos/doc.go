// Chaos runs the real relay between real servers, breaks everything that can
// break, and judges what arrived.
//
//	go run ./test/chaos -rounds 20 -seed 1
//
// A round is one fault drawn from the seed, or two at the same time, while
// writers go on; then the relay has to catch up. Every few rounds, and at the
// end, the writers stop, the slot must confirm everything, and the judge
// compares PostgreSQL with Kafka: no event is missing, repeated, reordered
// within its key or in two partitions, and no record is there that was never
// committed. The truth comes from a slot of the judge's own, so it has commit
// order and LSNs that the relay had no hand in.
//
// Between relay and server sits a recorder that reads the replication protocol.
// It checks I5 on every status update, and that every position confirmed is one
// that the server has given out. A sampler notes what was confirmed, then how far
// Kafka's partitions reach: an event below the first that lies above the second
// was confirmed before Kafka had it (I1, I4).
//
// What a seed fixes is the schedule, not the moment at which a process is hit:
// a failure comes with the history of the event instead of a promise that the
// same seed fails again. The schedule is then run again with rounds and faults
// left out, and the shortest one that fails is printed as a command.
package main
