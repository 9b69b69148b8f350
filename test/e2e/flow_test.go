package e2e

import (
	"testing"

	"github.com/walpost/walpost/internal/testkit"
)

// onMajors runs a test on each PostgreSQL version of the matrix.
func onMajors(t *testing.T, f func(t *testing.T, major int)) {
	for _, major := range testkit.Majors(t) {
		t.Run("pg"+itoa(major), func(t *testing.T) {
			t.Parallel()
			f(t, major)
		})
	}
}

func itoa(n int) string { return string([]byte{byte('0' + n/10), byte('0' + n%10)}) }

// TestOrdinaryFlow: single-row and multi-row transactions, then a clean stop and
// start without a repeat.
func TestOrdinaryFlow(t *testing.T) {
	t.Parallel()
	onMajors(t, func(t *testing.T, major int) {
		o := newOutbox(t, major)
		o.createTopic("order")
		r := o.start()
		var events []event
		for n := range 50 {
			events = append(events, newEvent("order", itoa(n%7), n))
			o.insert(events[len(events)-1])
		}
		for n := 50; n < 150; n += 10 {
			var many []event
			for i := range 10 {
				many = append(many, newEvent("order", itoa(i%7), n+i))
			}
			o.insert(many...)
			events = append(events, many...)
		}
		r.awaitPublished(150)
		o.awaitConfirmed()
		for range 3 {
			r.stop()
			r = o.start()
			r.awaitReady()
			last := newEvent("order", "0", len(events)+1000)
			o.insert(last)
			events = append(events, last)
			r.awaitPublished(1)
		}
		r.stop()
		if repeats := check(t, o.read("order"), events); repeats != 0 {
			t.Errorf("%d repeats after clean stops", repeats)
		}
	})
}
