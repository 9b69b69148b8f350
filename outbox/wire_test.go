package outbox

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/walpost/walpost/internal/testkit/pgframe"
)

// wire counts what passes between driver and server, and does something at one
// of these points: before what the driver sends, or before it sees a message of
// the server.
type wire struct {
	mu     sync.Mutex
	trips  int
	points int
	at     int // 0: never
	fault  func(net.Conn) error
}

// take gives how many round trips there were since the last call.
func (w *wire) take() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := w.trips
	w.trips = 0
	return n
}

// arm sets the point, counted from now on.
func (w *wire) arm(at int, fault func(net.Conn) error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.points, w.at, w.fault = 0, at, fault
}

// reached says whether the point has passed.
func (w *wire) reached() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.points >= w.at
}

func (w *wire) pass(conn net.Conn, kind byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if kind == 'Z' {
		w.trips++
	}
	if w.points++; w.at == 0 || w.points != w.at {
		return nil
	}
	return w.fault(conn)
}

// wiredConn hands the server's messages over one by one.
type wiredConn struct {
	net.Conn
	wire    *wire
	framer  pgframe.Framer
	pending []byte
}

func (c *wiredConn) Read(b []byte) (int, error) {
	for len(c.pending) == 0 {
		if kind, body, ok := c.framer.Message(); ok {
			if err := c.wire.pass(c.Conn, kind); err != nil {
				return 0, err
			}
			c.pending = append(binary.BigEndian.AppendUint32([]byte{kind}, uint32(len(body)+4)), body...)
			break
		}
		n, err := c.Conn.Read(b)
		if err != nil {
			return 0, err
		}
		c.framer.Add(b[:n])
	}
	n := copy(b, c.pending)
	c.pending = c.pending[n:]
	return n, nil
}

func (c *wiredConn) Write(b []byte) (int, error) {
	if err := c.wire.pass(c.Conn, 0); err != nil {
		return 0, err
	}
	return c.Conn.Write(b)
}

// Whatever is lost on the wire at whichever point, and wherever the caller gives
// up: no error means that the effect or the parked event is there, an error means
// that it may be, and the next call makes it so, once.
func TestFaultsAtEachPointOfTheWire(t *testing.T) {
	t.Parallel()
	broken := errors.New("no stock")
	fails := func(context.Context, pgx.Tx, Message) error { return broken }
	for name, c := range map[string]wireCase{
		"applied":                     {version: 1, handler: effect("billing")},
		"begun by a call":             {version: 1, handler: effect("billing"), begins: true},
		"applied, and what waited":    {version: 1, handler: effect("billing"), waits: true},
		"duplicate":                   {version: 1, handler: effect("billing"), before: 1},
		"duplicate after a duplicate": {version: 1, handler: effect("billing"), before: 2},
		"parked for a gap":            {version: 3, handler: effect("billing")},
		"parked for its handler":      {version: 1, handler: fails},
		"applied in a batch":          {version: 1, handler: effect("billing"), batch: true},
		"duplicates in a batch":       {version: 1, handler: effect("billing"), batch: true, before: 2},
	} {
		for how, cancels := range map[string]bool{"connection lost": false, "context cancelled": true} {
			t.Run(name+", "+how, func(t *testing.T) {
				t.Parallel()
				b := setup(t)
				for at := 1; ; at++ {
					if at > 300 {
						t.Fatal("there is no end of points")
					}
					if done := faultAt(b, at, cancels, c); done || t.Failed() {
						if at < 5 {
							t.Errorf("only %d points", at)
						}
						return
					}
				}
			})
		}
	}
}

type wireCase struct {
	version int64
	handler Handler
	before  int  // deliveries before
	waits   bool // the next version is parked
	batch   bool // with a message of another aggregate
	begins  bool
}

// faultAt says whether the call was over before the point.
func faultAt(b *bench, at int, cancels bool, wc wireCase) (over bool) {
	b.Helper()
	w := &wire{}
	conn := wired(b, w)
	defer func() { _ = conn.Close(b.ctx) }()
	o := ConsumerOptions{Name: fmt.Sprint("billing", at), FirstVersion: FirstOne, MaxAttempts: 1}
	var db Beginner = conn
	if wc.begins {
		db = BeginnerFunc(conn.Begin)
	}
	c, again := must(NewConsumer(db, o)), must(NewConsumer(b.pool, o))
	ms, waiting := []Message{message("a", wc.version)}, message("a", wc.version+1)
	if wc.batch {
		ms = append(ms, message("z", 1))
	}
	for range wc.before {
		if _, err := c.ProcessBatch(b.ctx, ms, wc.handler); err != nil {
			b.Fatal(err)
		}
	}
	if wc.waits {
		if r, err := again.Process(b.ctx, waiting, wc.handler); err != nil || r.Reason != Gap {
			b.Fatalf("%+v, %v", r, err)
		}
	}
	ctx, cancel := context.WithCancel(b.ctx)
	defer cancel()
	w.arm(at, func(conn net.Conn) error {
		if cancels {
			cancel()
			return nil
		}
		_ = conn.Close()
		return io.ErrUnexpectedEOF
	})
	results, err := c.ProcessBatch(ctx, ms, wc.handler)
	over = !w.reached()
	w.arm(0, nil)
	there := func(m Message) string {
		return b.text(`select ((select count(*) from effects where event_id = $1::uuid)
 + (select count(*) from parked_events where event_id = $1::uuid and consumer = $2 and resolved_at is null))::text`, m.ID.String(), o.Name)
	}
	for i := range results {
		if n := there(ms[i]); n != "1" {
			b.Errorf("point %d: %s, and %s effects and parked events", at, results[i].Outcome, n)
		}
	}
	if err == nil && len(results) != len(ms) {
		b.Errorf("point %d: no error, and %d results of %d", at, len(results), len(ms))
	}
	if _, err := again.ProcessBatch(b.ctx, ms, wc.handler); err != nil {
		b.Errorf("point %d: again: %v", at, err)
	}
	for _, m := range ms {
		if n := there(m); n != "1" {
			b.Errorf("point %d: again: %s effects and parked events", at, n)
		}
	}
	if n := b.text(`select count(*)::text from effects where event_id = $1::uuid`, waiting.ID.String()); wc.waits && n != "1" {
		b.Errorf("point %d: what waited was applied %s times", at, n)
	}
	return over
}

// A handler that panics takes its transaction with it, and nothing else.
func TestPanicOfAHandler(t *testing.T) {
	t.Parallel()
	for name, begins := range map[string]bool{"begun directly": false, "begun by a call": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			conn := wired(b, &wire{})
			var db Beginner = conn
			if begins {
				db = BeginnerFunc(conn.Begin)
			}
			c := must(NewConsumer(db, ConsumerOptions{Name: "billing"}))
			ms := []Message{message("a", 1), message("a", 2)}
			for range 2 {
				for n := 1; n <= len(ms); n++ {
					func() {
						defer func() {
							if recover() == nil {
								t.Error("the panic is gone")
							}
						}()
						_, _ = c.ProcessBatch(b.ctx, ms[:n], func(ctx context.Context, tx pgx.Tx, m Message) error {
							if err := effect("billing")(ctx, tx, m); err != nil {
								return err
							}
							panic("no stock")
						})
					}()
				}
			}
			b.expect("0", `select count(*)::text from effects`)
			if r, err := c.ProcessBatch(b.ctx, ms, effect("billing")); err != nil || len(r) != 2 || r[1].Outcome != Applied {
				t.Errorf("%v, %v", r, err)
			}
			b.expect("2", `select count(*)::text from effects`)
		})
	}
}
