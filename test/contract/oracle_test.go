package contract

import (
	"errors"
	"fmt"
	"strconv"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/walpost/walpost/internal/testkit"
	"github.com/walpost/walpost/internal/testkit/topic"
)

// Whole and killed are the numbers of the two writers' deposits. The second one
// never comes to its end.
const (
	wholeStart, wholeCount   = 0, 70
	killedStart, killedCount = 100_000, 1_000_000
	killedAfter              = 25 // events in the outbox
)

func TestExamplesKeepTheContract(t *testing.T) {
	t.Parallel()
	for _, e := range examples {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			if err := oracle(t, e.prepare(t), e.writeOnly); err != nil {
				t.Error(err)
			}
		})
	}
}

// oracle says what an example does wrong.
func oracle(t *testing.T, e command, writeOnly bool) error {
	t.Helper()
	a := newArena(t, e)
	stages := []struct {
		name string
		run  func() error
	}{
		{"two writers, one of them killed", a.writers},
		{"the outbox", a.checkOutbox},
		{"the topic", func() error { a.relay(); return a.checkTopic() }},
		{"killed in the middle of an effect", func() error { a.repeat(a.records()); return a.killedInEffect() }},
		{"crashes before the offset's commit", a.crashes},
		{"a consumer in Go goes on", a.mixed},
		{"two consumers at once", a.together},
		{"the group's offsets are reset", a.again},
		{"a stale event and a gap", a.staleAndGap},
	}
	if writeOnly {
		stages = stages[:3]
	}
	for _, stage := range stages {
		if err := stage.run(); err != nil {
			return fmt.Errorf("%s: %w", stage.name, err)
		}
	}
	return nil
}

// writers runs two at once and kills one when it has written some.
func (a *arena) writers() error {
	whole := a.start(nil, "write", strconv.Itoa(wholeCount), strconv.Itoa(wholeStart))
	killed := a.start(nil, "write", strconv.Itoa(killedCount), strconv.Itoa(killedStart))
	testkit.AwaitWithin(a.t, patience, "events of the second writer", func() bool {
		return !killed.running() ||
			a.number(`select count(*) from outbox_events where (payload->>'n')::bigint >= $1`, killedStart) >= killedAfter
	})
	if !killed.running() {
		return fmt.Errorf("%s has ended:\n%s", killed.what, killed.output())
	}
	killed.kill()
	if err := whole.exit(0); err != nil {
		return err
	}
	// A server process may still be at the dead client's last commit.
	testkit.Await(a.t, "the end of the writers' sessions", func() bool {
		return a.number(`select count(*) from pg_stat_activity where datname = current_database()
			and backend_type = 'client backend' and pid <> pg_backend_pid()`) == 0
	})
	return nil
}

// killedInEffect kills a consumer that has begun with a record and has not
// committed its effect: nothing of it may be left, least of all the offset.
func (a *arena) killedInEffect() error {
	holder := testkit.Connect(a.t, a.dsn)
	if _, err := holder.Exec(a.t.Context(), `begin; lock table account_view in access exclusive mode`); err != nil {
		a.t.Fatal(err)
	}
	consumer := a.start(nil, "consume", "1000000")
	testkit.AwaitWithin(a.t, patience, "a consumer that waits for account_view", func() bool {
		return !consumer.running() || a.number(waiting) > 0
	})
	if !consumer.running() {
		return fmt.Errorf("%s has ended:\n%s", consumer.what, consumer.output())
	}
	consumer.kill()
	// Its session has to go before the lock does, or the statement would run yet.
	a.exec(`select pg_terminate_backend(pid) from pg_locks where relation = 'account_view'::regclass and not granted`)
	testkit.Await(a.t, "the end of its session", func() bool { return a.number(waiting) == 0 })
	if _, err := holder.Exec(a.t.Context(), `rollback`); err != nil {
		a.t.Fatal(err)
	}
	a.evict()
	if n := a.committed(); n != 0 {
		return fmt.Errorf("the offsets of %d records are committed, and no effect: commit the offset after the transaction", n)
	}
	if n := a.number(`select count(*) from processed_events`); n != 0 {
		return fmt.Errorf("%d rows are in processed_events, and no effect: insert them in the effect's transaction", n)
	}
	return nil
}

const waiting = `select count(*) from pg_locks where relation = 'account_view'::regclass and not granted`

// crashes ends consumers between the two commits.
func (a *arena) crashes() error {
	for _, after := range []int{4, 1, 9} {
		before := a.committed()
		if err := a.start([]string{fmt.Sprintf("CRASH_AFTER=%d", after)}, "consume", "1000000").exit(42); err != nil {
			return err
		}
		a.evict()
		if n := a.committed() - before; n >= after {
			return fmt.Errorf("the offsets of %d records are committed, want at most the %d before the crash: commit the offset after the transaction", n, after-1)
		}
	}
	return nil
}

// mixed lets package outbox deal with some records under the same name: both rest
// on the same tables.
func (a *arena) mixed() error {
	inGo := *a
	inGo.example = examples[0].prepare(a.t)
	return inGo.start(nil, "consume", "20").exit(0)
}

// together lets two consumers of the group share what is left.
func (a *arena) together() error {
	records := len(a.records())
	var both []*process
	for range 2 {
		both = append(both, a.start(nil, "consume", strconv.Itoa(records)))
	}
	for _, p := range both {
		if err := p.exit(0); err != nil {
			return err
		}
	}
	a.evict()
	if n := a.committed(); n != records {
		return fmt.Errorf("the offsets of %d records are committed, want %d: commit the offset of every record that has been dealt with", n, records)
	}
	return a.checkView()
}

// again consumes the whole topic once more.
func (a *arena) again() error {
	a.forget()
	if err := a.start(nil, "consume", strconv.Itoa(len(a.records()))).exit(0); err != nil {
		return err
	}
	return a.checkView()
}

// staleAndGap gives an account an event with an old version and then one whose
// version is two ahead.
func (a *arena) staleAndGap() error {
	a.evict()
	last := a.records()
	record := last[len(last)-1]
	version := a.number(`select version from account where id = $1`, string(record.Key))
	stale := changed(record, uuid.New(), 1)
	id := uuid.Must(uuid.NewV7())
	gap := changed(record, id, version+2)
	a.repeat([]topic.Record{stale, gap})
	var errs []error
	consumer := a.start(nil, "consume", "2")
	if err := consumer.exit(4); err != nil {
		errs = append(errs, fmt.Errorf("after version 1 once more, with a new id, and then version %d after %d: %w", version+2, version, err))
	}
	if consumer.output() == "" {
		errs = append(errs, errors.New("a gap: say which version of which aggregate is missing"))
	}
	if n := a.number(`select count(*) from processed_events where event_id = $1`, id); n != 0 {
		errs = append(errs, errors.New("the event behind the gap is in processed_events: roll its transaction back"))
	}
	a.evict()
	return errors.Join(append(errs, a.checkView())...)
}

// changed is a record with another id and version.
func changed(record topic.Record, id uuid.UUID, version int) topic.Record {
	headers := make([]topic.Header, 0, len(record.Headers))
	for _, h := range record.Headers {
		switch h.Key {
		case "id":
			h.Value = []byte(id.String())
		case "aggregate_version":
			h.Value = []byte(strconv.Itoa(version))
		}
		headers = append(headers, h)
	}
	record.Headers = headers
	return record
}

// lines runs a query whose rows are one text each.
func (a *arena) lines(sql string, args ...any) []string {
	a.t.Helper()
	rows, err := a.db.Query(a.t.Context(), sql, args...)
	if err != nil {
		a.t.Fatalf("%s: %v", sql, err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		a.t.Fatalf("%s: %v", sql, err)
	}
	return lines
}
