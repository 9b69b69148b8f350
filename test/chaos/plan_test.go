package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The same seed gives the same schedule, and no fault comes twice before each
// has come once.
func TestDraw(t *testing.T) {
	t.Parallel()
	deck, err := chosen(options{brokers: 3})
	if err != nil {
		t.Fatal(err)
	}
	s := draw(7, len(deck), deck, 0.5)
	if diff := cmp.Diff(s.String(), draw(7, len(deck), deck, 0.5).String()); diff != "" {
		t.Errorf("two schedules from one seed:\n%s", diff)
	}
	seen := map[string]bool{}
	for _, one := range s {
		if len(one.faults) == 2 && one.faults[0].domain == one.faults[1].domain {
			t.Errorf("%v take hold of the same thing", one.names())
		}
		if name := one.faults[0].name; seen[name] {
			t.Errorf("%s came twice", name)
		}
		seen[one.faults[0].name] = true
	}
	if _, err := chosen(options{faults: "pg-kill,nonsense", brokers: 1}); err == nil {
		t.Error("an unknown fault is accepted")
	}
}

func TestParseSchedule(t *testing.T) {
	t.Parallel()
	const text = "3:relay-kill+pg-cut,7:kafka-cut,9:nothing"
	s, err := parseSchedule(text, 1)
	if err != nil {
		t.Fatal(err)
	}
	if s.String() != text || len(s) != 3 || s[0].number != 3 || len(s[0].faults) != 2 || len(s[2].faults) != 0 {
		t.Errorf("read %q as %q", text, s)
	}
	// A fault goes the same way whatever else is left of its round.
	alone := step{number: 3, faults: s[0].faults[1:]}
	if s[0].dice(1, s[0].faults[1]).Uint64() != alone.dice(1, alone.faults[0]).Uint64() {
		t.Error("a fault's dice depend on its company")
	}
	if s[0].dice(1, s[0].faults[0]).Uint64() == s[0].dice(1, s[0].faults[1]).Uint64() {
		t.Error("two faults have the same dice")
	}
	for _, wrong := range []string{"", "relay-kill", "x:relay-kill", "1:nonsense", "1:", "1:kafka-isr", "-1:relay-kill"} {
		if s, err := parseSchedule(wrong, 1); err == nil {
			t.Errorf("%q is read as %q", wrong, s)
		}
	}
}

// shrunk shrinks a schedule that fails as told, and returns what was asked too.
func shrunk(t *testing.T, from string, suspects map[int]bool, tries int, fails func(string) bool) (shortest string, asked []string) {
	t.Helper()
	s, err := parseSchedule(from, 1)
	if err != nil {
		t.Fatal(err)
	}
	sh := shrinker{tries: tries, say: func(string, ...any) {}, again: func(s schedule) *failure {
		asked = append(asked, s.String())
		if !fails(s.String()) {
			return nil
		}
		return &failure{schedule: s, err: finding{errors.New("again")}}
	}}
	f := sh.shrink(&failure{schedule: s, suspects: suspects, err: finding{errors.New("first")}})
	return f.schedule.String(), asked
}

func TestShrink(t *testing.T) {
	t.Parallel()
	const all = "1:pg-cut,2:relay-kill+pg-cut,3:kafka-cut,4:pg-kill,5:relay-term,6:kafka-kill+pg-cut,7:pg-stall,8:kafka-grow"
	kill := func(s string) bool { return strings.Contains(s, "relay-kill") }
	both := func(s string) bool { return strings.Contains(s, "relay-kill") && strings.Contains(s, "relay-term") }
	for _, test := range []struct {
		name     string
		suspects map[int]bool
		tries    int
		fails    func(string) bool
		want     string
	}{
		{"what the history points at", map[int]bool{2: true}, 3, kill, "2:relay-kill"},
		{"nothing points at it", nil, 30, kill, "2:relay-kill"},
		{"the history is wrong", map[int]bool{7: true}, 30, kill, "2:relay-kill"},
		{"two rounds", nil, 60, both, "2:relay-kill,5:relay-term"},
		{"any schedule", nil, 30, func(string) bool { return true }, "8:nothing"},
		{"not again", nil, 6, func(string) bool { return false }, all},
		{"no tries", nil, 0, kill, all},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got, asked := shrunk(t, all, test.suspects, test.tries, test.fails)
			if got != test.want {
				t.Errorf("shrunk to %q, want %q; runs:\n%s", got, test.want, strings.Join(asked, "\n"))
			}
			if len(asked) > test.tries {
				t.Errorf("%d runs, at most %d are allowed", len(asked), test.tries)
			}
			seen := map[string]bool{all: true}
			for _, s := range asked {
				if seen[s] {
					t.Errorf("%q was run twice", s)
				}
				seen[s] = true
			}
		})
	}
}

func TestFlags(t *testing.T) {
	t.Parallel()
	o, err := parse([]string{"-schedule", "3:relay-kill", "-seed", "9", "-freeze", "90s"})
	if err != nil {
		t.Fatal(err)
	}
	s, err := rounds(o)
	if err != nil {
		t.Fatal(err)
	}
	const want = "go run ./test/chaos -seed 9 -brokers 1 -schedule 3:relay-kill -repeat 8 -judge-every 1 -freeze 1m30s"
	if got := o.command(s); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
