package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
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

// plan draws rounds: every fault of the deck comes before one comes again.
type plan struct {
	rand  *rand.Rand
	deck  []fault
	left  []fault
	pairs float64
}

func newPlan(o options, deck []fault) *plan {
	return &plan{rand: rand.New(rand.NewPCG(o.seed, 0)), deck: deck, pairs: o.pairs}
}

func (p *plan) next() []fault {
	if len(p.left) == 0 {
		p.left = slices.Clone(p.deck)
		p.rand.Shuffle(len(p.left), func(i, j int) { p.left[i], p.left[j] = p.left[j], p.left[i] })
	}
	drawn := []fault{p.left[0]}
	p.left = p.left[1:]
	if p.rand.Float64() >= p.pairs {
		return drawn
	}
	var others []fault
	for _, f := range p.deck {
		if f.domain != drawn[0].domain {
			others = append(others, f)
		}
	}
	if len(others) > 0 {
		drawn = append(drawn, others[p.rand.IntN(len(others))])
	}
	return drawn
}

// round is what happened in one.
type round struct {
	number  int
	faults  []string
	began   time.Time
	ended   time.Time
	lsn     uint64 // the WAL's end when it began
	healing time.Duration
}

func (r round) String() string {
	return fmt.Sprintf("round %d: %s", r.number, strings.Join(r.faults, " + "))
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
