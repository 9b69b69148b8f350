package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/walpost/walpost/internal/pg"
)

// AggregateType of the events.
const AggregateType = "order"

const (
	orders      = 12 // aggregates
	application = "walpost-demo/orders"
)

// steps are the states of a standing order, which begins anew after the last.
var steps = [...]string{"placed", "paid", "packed", "shipped", "delivered"}

// The order's row comes first: it stays locked until the transaction ends, so
// whoever writes the next version does so after this one is committed.
const (
	createOrders = `create table {orders} (
  id      text primary key,
  version bigint not null,
  status  text not null
)`
	moveOrder = `insert into {orders} as o (id, version, status) values ($1, 1, ($2::text[])[1])
on conflict (id) do update set version = o.version + 1, status = ($2::text[])[1 + o.version % 5]
returning version, status`
	writeEvent = `insert into {outbox} (event_id, aggregate_type, aggregate_id, aggregate_version, event_type, payload, occurred_at)
values ($1::uuid, $2, $3, $4, $5, $6::jsonb, $7)`
	readEvents = `select event_id::text, aggregate_id, aggregate_version, payload::text from {outbox} order by seq`
)

// Options of a Service.
type Options struct {
	Config *pgx.ConnConfig
	Schema string // of the tables orders and outbox_events
	// Events is how many to commit; 0 goes on until the context ends.
	Events int
	// Workers write at the same time.
	Workers int
	// Pause between two transactions of a worker.
	Pause time.Duration
}

// Counts is what a Service has done so far.
type Counts struct {
	Events, Transactions, RolledBack int
}

// Service writes orders and their events.
type Service struct {
	opt  Options
	fill *strings.Replacer

	mu     sync.Mutex
	left   int // events that may still be begun, if Events is not 0
	counts Counts
	undone map[string]bool // ids of events that were rolled back
}

// New makes a service.
func New(opt Options) *Service {
	return &Service{
		opt: opt, left: opt.Events, undone: map[string]bool{},
		fill: strings.NewReplacer(
			"{orders}", pg.QuoteQualified(opt.Schema, "orders"),
			"{outbox}", pg.QuoteQualified(opt.Schema, "outbox_events")),
	}
}

// Prepare creates the table orders. The outbox must be there.
func (s *Service) Prepare(ctx context.Context) error {
	return s.connected(ctx, func(conn *pgx.Conn) error {
		if _, err := conn.Exec(ctx, s.fill.Replace(createOrders)); err != nil {
			return fmt.Errorf("create table orders: %w", err)
		}
		return nil
	})
}

// Run writes until all events are committed, or ctx ends.
func (s *Service) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for range max(s.opt.Workers, 1) {
		group.Go(func() error {
			return s.connected(ctx, func(conn *pgx.Conn) error { return s.work(ctx, conn) })
		})
	}
	if err := group.Wait(); err != nil {
		return fmt.Errorf("order service: %w", err)
	}
	return nil
}

// Counts are safe to ask for while the service runs.
func (s *Service) Counts() Counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts
}

// RolledBack are the ids of the events that must not arrive. Call it when Run
// has returned.
func (s *Service) RolledBack() map[string]bool { return s.undone }

// Committed reads the outbox: every event, in the order of its aggregate, with
// the payload as PostgreSQL gives it.
func (s *Service) Committed(ctx context.Context) ([]Event, error) {
	var events []Event
	err := s.connected(ctx, func(conn *pgx.Conn) error {
		// A read of everything takes what it takes.
		if _, err := conn.Exec(ctx, "set statement_timeout = 0"); err != nil {
			return err
		}
		rows, err := conn.Query(ctx, s.fill.Replace(readEvents))
		if err != nil {
			return err
		}
		events, err = pgx.CollectRows(rows, pgx.RowToStructByPos[Event])
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the outbox: %w", err)
	}
	return events, nil
}

func (s *Service) connected(ctx context.Context, f func(*pgx.Conn) error) error {
	conn, err := pg.Connect(ctx, s.opt.Config, application)
	if err != nil {
		return err
	}
	return errors.Join(f(conn), conn.Close(context.WithoutCancel(ctx)))
}

func (s *Service) work(ctx context.Context, conn *pgx.Conn) error {
	for ctx.Err() == nil {
		n := 1 // half of the transactions have one row
		if rand.N(2) == 0 {
			n += rand.N(6)
		}
		if n = s.take(n); n == 0 {
			return nil
		}
		t := transaction{keep: rand.N(8) != 0, savepoint: rand.N(8) == 0}
		for range n {
			t.orders = append(t.orders, fmt.Sprintf("order-%02d", 1+rand.N(orders)))
		}
		// Always in the same order, or two transactions could wait for each other.
		slices.Sort(t.orders)
		if err := s.write(ctx, conn, &t); err != nil {
			return err
		}
		s.note(&t)
		if s.opt.Pause > 0 {
			timer := time.NewTimer(s.opt.Pause/2 + rand.N(s.opt.Pause))
			select {
			case <-timer.C:
			case <-ctx.Done():
				timer.Stop()
			}
		}
	}
	return context.Cause(ctx)
}

// take gives up to n of the events that are left.
func (s *Service) take(n int) int {
	if s.opt.Events == 0 {
		return n
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	n = min(n, s.left)
	s.left -= n
	return n
}

func (s *Service) note(t *transaction) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range t.undone {
		s.undone[id] = true
	}
	s.counts.RolledBack += len(t.undone)
	s.counts.Events += len(t.written)
	if t.keep {
		s.counts.Transactions++
	} else {
		s.left += len(t.orders)
	}
}

type transaction struct {
	orders    []string // one event each
	keep      bool     // commit
	savepoint bool     // write one more event and take it back

	written, undone []string // ids of events
}

var errUndo = errors.New("rolled back on purpose")

func (s *Service) write(ctx context.Context, conn *pgx.Conn, t *transaction) error {
	err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		for _, order := range t.orders {
			id, err := s.event(ctx, tx, order)
			if err != nil {
				return err
			}
			t.written = append(t.written, id)
		}
		if t.savepoint {
			err := pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error {
				// The last order is locked already.
				id, err := s.event(ctx, tx, t.orders[len(t.orders)-1])
				if err != nil {
					return err
				}
				t.undone = append(t.undone, id)
				return errUndo
			})
			if !errors.Is(err, errUndo) {
				return err
			}
		}
		if !t.keep {
			return errUndo
		}
		return nil
	})
	if errors.Is(err, errUndo) {
		t.undone, t.written = append(t.undone, t.written...), nil
		return nil
	}
	return err
}

// event moves an order on and writes the event of it.
func (s *Service) event(ctx context.Context, tx pgx.Tx, order string) (id string, err error) {
	var version int64
	var status string
	if err := tx.QueryRow(ctx, s.fill.Replace(moveOrder), order, steps[:]).Scan(&version, &status); err != nil {
		return "", fmt.Errorf("move %s on: %w", order, err)
	}
	payload, err := json.Marshal(map[string]any{
		"order": order, "version": version, "status": status,
		"customer": "Zoë Müller", "total": fmt.Sprintf("%d.%02d €", 1+rand.N(500), rand.N(100)),
	})
	if err != nil {
		return "", err
	}
	id = uuid.NewString()
	_, err = tx.Exec(ctx, s.fill.Replace(writeEvent),
		id, AggregateType, order, version, "order_"+status, string(payload), time.Now())
	if err != nil {
		return "", fmt.Errorf("write an event of %s: %w", order, err)
	}
	return id, nil
}
