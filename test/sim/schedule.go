package sim

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// plan is everything that a seed decides: the servers, what is written, and the
// faults. It is plain data, so that it can be cut down and run again.
type plan struct {
	Seed       uint64
	Brokers    int
	Topics     []string
	Partitions int
	MaxBatch   int   // of the topics; 0: no limit
	LimitBytes int64 // of the sink
	BatchBytes int
	Forgetful  bool // see postgres
	// What the relay may not have.
	NoStore, NoTables, NoFence, NoTail bool

	Transactions []transaction
	Steps        []step
}

// protected says whether not even a duplicate may appear.
func (p *plan) protected() bool { return !p.NoStore && !p.NoTables && !p.NoFence && !p.NoTail }

// A step is a fault at a time, for some time.
type step struct {
	At, For time.Duration
	Kind    string
	N       int           // a partition, a broker, a code: what the kind needs
	Delay   time.Duration // of requests
	Flag    bool
}

func (s step) String() string {
	return fmt.Sprintf("%v for %v: %s n=%d delay=%v flag=%v", s.At, s.For, s.Kind, s.N, s.Delay, s.Flag)
}

// kinds of faults, with how often each is drawn.
var kinds = []struct {
	name   string
	weight int
}{
	{"kill", 8}, {"stop", 3}, {"freeze", 6}, {"second", 3}, {"kafka-hold", 3},
	{"pg-crash", 4}, {"pg-restart", 3}, {"pg-cut", 4}, {"pg-hold", 3}, {"pg-save", 4},
	{"lose-request", 3}, {"lose-answer", 5}, {"delay", 7}, {"slow", 2}, {"cut", 3},
	{"broker", 3}, {"leader", 4}, {"stall", 4}, {"short", 3}, {"code", 5}, {"coordinator", 4}, {"list", 2}, {"grow", 2},
}

// Codes that the sink classifies, answered without storing anything.
var refusals = []int16{2, 3, 5, 6, 7, 8, 9, 13, 14, 15, 16, 19, 20, 29, 31, 41, 51, 56, 72, 74, 75, 77, 89, 100, -1}

// Codes that a broker also answers when the batch is in its log.
var storedAnyway = []int16{3, 6, 7, 13, 20, 56}

var coordinatorCodes = []int16{14, 15, 16, 51, 7, 13}

var listCodes = []int16{5, 6, 9, 7, 56, 74, 75}

// draw makes a plan of a seed.
func draw(seed uint64) *plan {
	r := rand.New(rand.NewPCG(seed, 0x77616c))
	pick := func(list []int16) int { return int(list[r.IntN(len(list))]) }
	p := &plan{
		Seed: seed, Brokers: 1 + r.IntN(3), Partitions: 1 + r.IntN(3), LimitBytes: 6 << 20, BatchBytes: 1_000_000, Forgetful: r.IntN(2) == 0,
	}
	if r.IntN(3) == 0 {
		p.LimitBytes = 24 << 10 // a few blocks: the pump is blocked often
	}
	if r.IntN(3) == 0 {
		p.BatchBytes = 600
	}
	if r.IntN(5) == 0 {
		p.MaxBatch = 900
	}
	for i := range 1 + r.IntN(3) {
		p.Topics = append(p.Topics, fmt.Sprintf("t%d", i))
	}
	if r.IntN(4) == 0 {
		switch r.IntN(4) {
		case 0:
			p.NoStore = true
		case 1:
			p.NoTables = true
		case 2:
			p.NoFence = true
		case 3:
			p.NoTail = true
		}
	}
	span := time.Duration(20+r.IntN(50)) * time.Second
	at := time.Duration(0)
	event := 0
	for at < span {
		t := transaction{At: at, Aborted: r.IntN(10) == 0, Copy: r.IntN(4) == 0, Early: r.IntN(3) == 0}
		n := 1 + r.IntN(4)
		switch r.IntN(12) {
		case 0:
			n = 0 // nothing of it is for us
		case 1:
			n = 20 + r.IntN(40)
		}
		if r.IntN(3) == 0 {
			t.Foreign = r.IntN(5000)
		}
		for range n {
			e := eventOf(r, p, event)
			if event++; t.Aborted {
				e.ID += "-aborted"
			}
			t.Events = append(t.Events, e)
		}
		p.Transactions = append(p.Transactions, t)
		if r.IntN(4) > 0 {
			at += time.Duration(r.IntN(500)) * time.Millisecond
		} else {
			at += time.Duration(r.IntN(6000)) * time.Millisecond
		}
	}
	total := 0
	for _, k := range kinds {
		total += k.weight
	}
	for range 2 + r.IntN(9) {
		w := r.IntN(total)
		i := 0
		for ; w >= kinds[i].weight; i++ {
			w -= kinds[i].weight
		}
		s := step{
			At: time.Duration(r.Int64N(int64(span))), For: time.Duration(50+r.IntN(8000)) * time.Millisecond,
			Kind: kinds[i].name, N: r.IntN(16), Flag: r.IntN(2) == 0,
		}
		if r.IntN(3) == 0 {
			// While something is on its way.
			s.At = p.Transactions[r.IntN(len(p.Transactions))].At + time.Duration(r.Int64N(int64(8*time.Millisecond)))
		}
		switch s.Kind {
		case "freeze", "pg-hold", "kafka-hold":
			s.For = time.Duration(1000+r.IntN(30000)) * time.Millisecond
		case "delay", "slow":
			s.Delay = time.Duration(10+r.IntN(14000)) * time.Millisecond
			if s.Kind == "slow" {
				s.Delay /= 20
			}
		case "code":
			if s.Flag {
				s.N = pick(storedAnyway)
			} else {
				s.N = pick(refusals)
			}
		case "coordinator":
			s.N = pick(coordinatorCodes)
		case "list":
			s.N = pick(listCodes)
		case "second":
			s.For = time.Duration(5+r.IntN(30)) * time.Second
		}
		p.Steps = append(p.Steps, s)
		// Faults come in pairs: what one of them leaves half done meets the next.
		if r.IntN(3) == 0 && len(p.Steps) < 12 {
			other := kinds[r.IntN(4)].name
			p.Steps = append(p.Steps, step{At: s.At + time.Duration(r.Int64N(int64(s.For))), For: 2 * time.Second, Kind: other, N: r.IntN(16)})
		}
	}
	tell(r, p, span, event)
	slices.SortStableFunc(p.Steps, func(a, b step) int { return cmp.Compare(a.At, b.At) })
	return p
}

// tell adds a story to every other plan: faults that have to meet within
// moments, which chance alone brings together too seldom.
func tell(r *rand.Rand, p *plan, span time.Duration, event int) {
	at := 2*time.Second + time.Duration(r.Int64N(int64(span)))
	soon := func(most time.Duration) time.Duration { return time.Duration(r.Int64N(int64(most))) }
	switch r.IntN(10) {
	case 0, 1:
		// A topic's first events, while the relay loses PostgreSQL, or all, and a
		// successor comes.
		t := transaction{At: at}
		for range 1 + r.IntN(3) {
			e := eventOf(r, p, event)
			e.Topic = "late"
			event++
			t.Events = append(t.Events, e)
		}
		again := t
		again.At += time.Second
		again.Events = nil
		for range 3 {
			e := eventOf(r, p, event)
			e.Topic = "late"
			event++
			again.Events = append(again.Events, e)
		}
		p.Topics = append(p.Topics, "late")
		p.Transactions = append(p.Transactions, t, again)
		kind := "pg-hold"
		if r.IntN(3) == 0 {
			kind = "freeze"
		}
		p.Steps = append(p.Steps, step{At: at + soon(300*time.Millisecond), For: 9*time.Second + soon(8*time.Second), Kind: kind, Flag: true})
		if r.IntN(2) == 0 {
			p.Steps = append(p.Steps, step{At: at, For: 15 * time.Second, Kind: "delay", N: 6, Delay: soon(12 * time.Second)})
		}
	case 2:
		// A successor reads the ends of partitions that have no leader, and what it
		// has to find there is moments old.
		at = p.Transactions[r.IntN(len(p.Transactions))].At
		p.Steps = append(p.Steps,
			step{At: at + 5*time.Millisecond + soon(100*time.Millisecond), Kind: "kill"},
			step{At: at + 8*time.Millisecond + soon(300*time.Millisecond), For: 2*time.Second + soon(6*time.Second), Kind: "broker", N: r.IntN(3)})
	case 3:
		// Keys move, and the one who moves them dies; so does the next, while it
		// replays.
		at = p.Transactions[r.IntN(len(p.Transactions))].At
		p.Steps = append(p.Steps,
			step{At: max(at-soon(time.Second), 0), Kind: "grow", N: r.IntN(4)},
			step{At: max(at-soon(time.Second), 0), For: soon(4 * time.Second), Kind: "stall", N: r.IntN(8)},
			step{At: at + soon(2*time.Second), Kind: "kill"},
			step{At: at + soon(3*time.Second), Kind: "kill"})
	case 4:
		// The slot goes back, and nobody is there who knows better.
		p.Steps = append(p.Steps,
			step{At: at, For: soon(3 * time.Second), Kind: "pg-crash"},
			step{At: at + soon(3*time.Second), Kind: "kill"})
	}
	slices.SortStableFunc(p.Transactions, func(a, b transaction) int { return cmp.Compare(a.At, b.At) })
}

func eventOf(r *rand.Rand, p *plan, n int) row {
	e := row{ID: fmt.Sprintf("e%04d", n), Topic: p.Topics[r.IntN(len(p.Topics))], Aggregate: fmt.Sprintf("k%d", r.IntN(6)), Payload: 1 + r.IntN(60)}
	if r.IntN(10) == 0 {
		e.Payload = 300 + r.IntN(300)
	}
	return e
}
