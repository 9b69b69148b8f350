package sim

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pglogrepl"

	"github.com/walpost/walpost/internal/event"
	"github.com/walpost/walpost/internal/relay"
	"github.com/walpost/walpost/internal/route"
	"github.com/walpost/walpost/sink"
	"github.com/walpost/walpost/slot"
)

// link is an instance's network to one side. Held, nothing arrives.
type link struct {
	dead atomic.Bool
	mu   sync.Mutex
	held int
	free chan struct{} // closed when held becomes 0, or at death
}

func (l *link) isHeld() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.held > 0
}

func (l *link) hold() {
	l.mu.Lock()
	if l.held++; l.held == 1 {
		l.free = make(chan struct{})
	}
	l.mu.Unlock()
}

func (l *link) release() (now bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held == 0 {
		return false
	}
	if l.held--; l.held == 0 {
		close(l.free)
	}
	return l.held == 0
}

func (l *link) kill() {
	l.dead.Store(true)
	for l.isHeld() {
		l.release()
	}
}

// reach waits while the link is held. A dead process reaches nothing.
func (l *link) reach(ctx context.Context) error {
	for {
		l.mu.Lock()
		held, free := l.held > 0, l.free
		l.mu.Unlock()
		if l.dead.Load() {
			return net.ErrClosed
		}
		if !held {
			return nil
		}
		select {
		case <-free:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// instance is one process: a relay with its sink. It has no other state, so
// what ends it leaves nothing behind.
type instance struct {
	world    *world
	name     string
	postgres link
	kafka    link
	sent     pglogrepl.LSN // to any of its sessions; guarded by the server
	shutdown func()

	relay *relay.Relay
	sink  *sink.Kafka
	stop  context.CancelFunc
	kill  context.CancelFunc
	ended chan struct{}
	err   error
}

func (i *instance) isDead() bool { return i.postgres.dead.Load() }

// start runs a new process.
func (w *world) start(name string) *instance {
	i := &instance{world: w, name: name, ended: make(chan struct{})}
	mapper, err := event.NewMapper([]event.Table{{Schema: "public", Table: "outbox_events"}})
	if err != nil {
		panic(err)
	}
	router, err := route.New(route.Options{Topic: "<aggregate_type>"})
	if err != nil {
		panic(err)
	}
	opt := relay.Options{
		SlotName: "walpost", Instance: name,
		Open: func(ctx context.Context, known slot.History, remembered func() (slot.History, error), _ *slot.Published) (relay.Stream, error) {
			if err := i.postgres.reach(ctx); err != nil {
				return nil, err
			}
			time.Sleep(4 * latency)
			if err := i.postgres.reach(ctx); err != nil {
				return nil, err
			}
			left, err := remembered()
			if err != nil {
				return nil, err
			}
			s, err := w.postgres.open(i, known, left)
			if err != nil {
				return nil, err
			}
			return s, nil
		},
		NewSink: func(acked func([]sink.Ack)) (sink.Sink, error) {
			o := sink.Options{
				ClientID: name, LimitBytes: w.plan.LimitBytes, MaxBatchBytes: w.plan.BatchBytes, AwaitRecovery: true, Acked: acked,
				Topics: sink.TopicPolicy{Create: true},
				Dial: func(ctx context.Context, _, addr string) (net.Conn, error) {
					return w.cluster.dial(ctx, i, addr)
				},
			}
			for _, b := range w.cluster.brokers {
				o.Brokers = append(o.Brokers, w.cluster.name(b)+":9092")
			}
			var err error
			i.sink, err = sink.New(o)
			return i.sink, err
		},
		NewMonitor: func(_ func(error), shutdown func()) relay.Monitor {
			i.shutdown = shutdown
			return monitor{}
		},
		Translator: route.NewRows(mapper, router), Metrics: noMetrics{},
	}
	if !w.plan.NoStore {
		opt.Store = &store{pg: w.postgres, who: i}
	}
	if i.relay, err = relay.New(opt); err != nil {
		panic(err)
	}
	intake, stop := context.WithCancel(context.Background())
	hard, kill := context.WithCancel(context.Background())
	i.stop, i.kill = stop, kill
	w.postgres.with(func() { w.postgres.instances = append(w.postgres.instances, i) })
	w.log(name, "started")
	w.spawn(func() {
		defer close(i.ended)
		i.err = i.relay.Run(intake, hard)
		w.log(name, "ended: %v", i.err)
		i.die()
		stop()
		kill()
	})
	return i
}

// die takes the process off the network. What it had sent is still on its way.
func (i *instance) die() {
	i.postgres.kill()
	i.kafka.kill()
	w := i.world
	w.cluster.each(i, func(c *conn) {
		c.hold(false)
		_ = c.Close()
	})
	w.postgres.with(func() {
		if s := w.postgres.active; s != nil && s.who == i {
			w.postgres.active = nil
		}
	})
}

// killed is SIGKILL.
func (i *instance) killed() {
	i.world.log(i.name, "killed")
	i.die()
	i.kill()
	i.stop()
}

// hold stops its network to one side or both.
func (i *instance) hold(pg, kafka bool) {
	w := i.world
	w.log(i.name, "held: postgres=%v kafka=%v", pg, kafka)
	if kafka {
		i.kafka.hold()
		w.cluster.each(i, func(c *conn) { c.hold(true) })
	}
	if pg {
		i.postgres.hold()
		w.spawn(func() {
			time.Sleep(walSenderTimeout)
			w.postgres.with(func() {
				if s := w.postgres.active; s != nil && s.who == i && i.postgres.isHeld() {
					w.log("postgres", "%s timed out", i.name)
					w.postgres.active = nil
				}
			})
		})
	}
}

func (i *instance) release(pg, kafka bool) {
	w := i.world
	w.log(i.name, "released: postgres=%v kafka=%v", pg, kafka)
	if kafka && i.kafka.release() {
		w.cluster.each(i, func(c *conn) { c.hold(false) })
	}
	if pg && i.postgres.release() {
		w.postgres.with(func() {
			if s := w.postgres.active; s != nil && s.who == i && s.closing {
				w.postgres.active = nil // the end of the connection arrives
			}
		})
	}
}

type noMetrics struct{}

func (noMetrics) EventReceived(int)                      {}
func (noMetrics) EventIgnored(string, int)               {}
func (noMetrics) EventsAcked(string, int, time.Duration) {}
func (noMetrics) TransactionEvents(int)                  {}
func (noMetrics) StreamConnect(string)                   {}
func (noMetrics) StreamDisconnect(string)                {}
func (noMetrics) DecodeError(string)                     {}
