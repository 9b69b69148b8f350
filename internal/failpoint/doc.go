// Package failpoint names the points of the product where a crash, a stall or a
// failure would hurt most, so that tests can have one there.
//
// Guarantee: a program that is built without the build tag "failpoint" has none
// of this in it, neither a point's name nor the variable's. Hit and Fail are
// then empty functions that the compiler inlines away, with the branch behind
// Fail. TestRelease holds that against the binary itself.
//
// With the tag the environment variable WALPOST_FAILPOINTS arms points:
//
//	WALPOST_FAILPOINTS="sink.after-send=crash@3;checkpoint.before-save=fail"
//
//	crash        the process kills itself: nothing is flushed, closed or deferred
//	stall        whoever comes there waits for ever
//	stall:PATH   …until there is no file PATH any more
//	fail         the step fails like a connection that was cut; only at points
//	             where something can fail
//	…@N          at the Nth time only (from 1 on); otherwise each time
//
// Each writes a line to stderr before it acts. A name that is not in the registry
// (points.go), a point given twice, or anything else that is not understood ends
// the program at its start: a test whose point is never armed would prove
// nothing.
//
// A point is one line where it belongs, with its name written out:
//
//	failpoint.Hit("relay.before-confirm")
//
//	if err := failpoint.Fail("sink.before-register"); err != nil {
//		return err
//	}
//
// and one line in the registry. A test holds the two against each other; another
// one (test/e2e) crashes the real program at every registered point, starts it
// again, and looks for events that are lost, doubled or out of order. A new point
// is in both at once.
//
// What is armed is the process's own state, set once before anything runs: the
// one global variable of the product, and only of builds with the tag.
package failpoint
