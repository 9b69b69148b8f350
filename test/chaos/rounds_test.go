package main

import (
	"strings"
	"testing"
	"time"
)

// quick are the faults that are over soon, with one of each dear kind.
var quick = []string{
	"relay-kill", // and relay-kills, relay-kill-late
	"relay-term", "relay-freeze", "relay-zombie", "relay-two",
	"pg-kill", "pg-immediate", "pg-confirm-kill", "pg-terminate", "pg-cut", // and pg-cut-mid
	"kafka-kill", "kafka-cut", // and kafka-cut-request, kafka-cut-response
	"kafka-lost-response", "kafka-grow",
}

// TestRounds is the bench itself: twenty rounds with real servers and the real
// binary. More, and those that take long, are run by hand.
func TestRounds(t *testing.T) {
	if testing.Short() {
		t.Skip("needs PostgreSQL, Kafka and more than a minute")
	}
	t.Parallel()
	o, err := parse([]string{"-rounds", "20", "-seed", "20", "-faults", strings.Join(quick, ","), "-pairs", "0.2", "-judge-every", "10"})
	if err != nil {
		t.Fatal(err)
	}
	o.out, o.patience = t.Output(), time.Minute
	s, err := rounds(o)
	if err != nil {
		t.Fatal(err)
	}
	if f := execute(t.Context(), o, s); f != nil {
		t.Fatalf("%v\nagain: %s", f.err, o.command(f.schedule))
	}
}
