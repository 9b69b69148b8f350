package main

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"
)

// domain is what a fault takes hold of. Two faults of one round are of different
// domains, so that they need not know of each other.
type domain int

const (
	relayDomain domain = iota
	postgresDomain
	kafkaDomain
)

// fault is one way to break something. It returns when what it broke is whole
// again; the relay may still have to recover.
type fault struct {
	name   string
	what   string
	domain domain
	three  bool // needs three brokers
	do     func(ctx context.Context, b *bench, r *rand.Rand) error
}

func catalogue() []fault {
	return slices.Concat(relayFaults(), postgresFaults(), kafkaFaults())
}

// chosen are the faults that the flags allow.
func chosen(o options) ([]fault, error) {
	var names []string
	if o.faults != "" {
		names = strings.Split(o.faults, ",")
	}
	used := make([]bool, len(names))
	var deck []fault
	for _, f := range catalogue() {
		if f.three && o.brokers < 3 {
			continue
		}
		wanted := len(names) == 0
		for i, name := range names {
			if strings.HasPrefix(f.name, strings.TrimSpace(name)) {
				wanted, used[i] = true, true
			}
		}
		if wanted {
			deck = append(deck, f)
		}
	}
	if i := slices.Index(used, false); i >= 0 {
		return nil, fmt.Errorf("no fault %q with %d broker(s); -faults help lists them", names[i], o.brokers)
	}
	return deck, nil
}

// step is one round of a schedule. Its number and the seed decide how each of
// its faults goes, whatever else is in the schedule.
type step struct {
	number int
	faults []fault
}

func (s step) names() []string {
	names := make([]string, len(s.faults))
	for i, f := range s.faults {
		names[i] = f.name
	}
	return names
}

// dice are those of one fault.
func (s step) dice(seed uint64, f fault) *rand.Rand {
	h := fnv.New32a()
	_, _ = h.Write([]byte(f.name))
	return rand.New(rand.NewPCG(seed, uint64(s.number)<<32|uint64(h.Sum32())))
}

// schedule is all rounds of a run.
type schedule []step

// nothing stands for a round without a fault.
const nothing = "nothing"

// String is what parseSchedule reads.
func (s schedule) String() string {
	parts := make([]string, len(s))
	for i, step := range s {
		faults := strings.Join(step.names(), "+")
		if faults == "" {
			faults = nothing
		}
		parts[i] = fmt.Sprintf("%d:%s", step.number, faults)
	}
	return strings.Join(parts, ",")
}

func parseSchedule(text string, brokers int) (schedule, error) {
	known := map[string]fault{}
	for _, f := range catalogue() {
		if !f.three || brokers == 3 {
			known[f.name] = f
		}
	}
	var s schedule
	for part := range strings.SplitSeq(text, ",") {
		number, faults, ok := strings.Cut(part, ":")
		n, err := strconv.ParseUint(number, 10, 31)
		if !ok || err != nil {
			return nil, fmt.Errorf("a schedule is like 3:relay-kill+pg-cut,7:kafka-cut, and %q is not", part)
		}
		one := step{number: int(n)}
		for name := range strings.SplitSeq(faults, "+") {
			f, ok := known[name]
			switch {
			case ok:
				one.faults = append(one.faults, f)
			case name != nothing:
				return nil, fmt.Errorf("no fault %q with %d broker(s); -faults help lists them", name, brokers)
			}
		}
		s = append(s, one)
	}
	return s, nil
}

// draw makes a schedule from a seed: every fault of the deck comes before one
// comes again, and this share of the rounds has two.
func draw(seed uint64, rounds int, deck []fault, pairs float64) schedule {
	dice := rand.New(rand.NewPCG(seed, 0))
	var left []fault
	var s schedule
	for n := 1; n <= rounds; n++ {
		if len(left) == 0 {
			left = slices.Clone(deck)
			dice.Shuffle(len(left), func(i, j int) { left[i], left[j] = left[j], left[i] })
		}
		one := step{number: n, faults: []fault{left[0]}}
		left = left[1:]
		if dice.Float64() < pairs {
			var others []fault
			for _, f := range deck {
				if f.domain != one.faults[0].domain {
					others = append(others, f)
				}
			}
			if len(others) > 0 {
				one.faults = append(one.faults, others[dice.IntN(len(others))])
			}
		}
		s = append(s, one)
	}
	return s
}

// round is what happened in one.
type round struct {
	step    step
	began   time.Time
	ended   time.Time
	lsn     uint64 // the WAL's end when it began
	healing time.Duration
}

func (r round) String() string {
	return fmt.Sprintf("round %d: %s", r.step.number, strings.Join(r.step.names(), " + "))
}

// between is a random duration.
func between(r *rand.Rand, from, to time.Duration) time.Duration {
	return from + time.Duration(r.Int64N(int64(to-from)+1))
}

// pause waits, or less if ctx ends.
func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
