package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/walpost/walpost/internal/testkit/pgserver"
	"github.com/walpost/walpost/outbox"
)

// The phase of -application measures package outbox, which runs in the
// application: with PostgreSQL alone, on one connection, so that nothing but a
// message's own path is measured.
const (
	leastRounds = 25  // of everything, one after the other, in rotating order
	perRound    = 100 // messages of each kind in a round
	perBatch    = 50  // messages of ProcessBatch, and handlers of the transaction beside it
	copied      = 5000
)

// Application has the results. Durable commits are what users have; the other
// set says what is left when commits do not wait for the disk.
type Application struct {
	Trips   []Trips `json:"round_trips"`
	Copy    *Stat   `json:"copy_vs_single_inserts"`
	Durable []Work  `json:"durable_commits"`
	Async   []Work  `json:"synchronous_commit_off"`
}

// Trips are counted, at the second and any later use of a connection.
type Trips struct {
	What string `json:"what"`
	N    int    `json:"round_trips"`
}

// Work is what one kind of work costs per message. The ratio is that to the work
// it is compared with, in the same round.
type Work struct {
	What   string `json:"what"`
	Micros *Stat  `json:"us_per_message"`
	Ratio  *Stat  `json:"ratio,omitempty"`
	To     string `json:"ratio_to,omitempty"`
}

// The names of what is compared.
const (
	workPlain         = "side effect alone"
	workPlainBatch    = "side effect alone, 50 per transaction"
	workID            = "Process, without version"
	workBoth          = "Process, by id and version"
	workVersion       = "Process, by version"
	workIDAgain       = "duplicate, without version"
	workBothAgain     = "duplicate, by id and version"
	workVersionAgain  = "duplicate, by version"
	workLone          = "duplicate between new messages"
	workBatch         = "ProcessBatch of 50, by id and version"
	workBatchAgain    = "duplicates, ProcessBatch of 50"
	tripsPlain        = "transaction of one statement"
	tripsWrite        = "RunTx: the same with one event"
	tripsWriteMany    = "RunTx: the same with 100 events"
	tripsProcess      = "Process, handler of one statement"
	tripsDuplicate    = "Process, duplicate after a duplicate"
	tripsLone         = "Process, duplicate after another outcome"
	tripsProcessBatch = "ProcessBatch of 50, handlers of one statement"
)

// compared says what a ratio is to.
var compared = map[string]string{
	workID: workPlain, workBoth: workPlain, workVersion: workPlain, workBatch: workPlainBatch,
	workIDAgain: workID, workBothAgain: workBoth, workVersionAgain: workVersion, workLone: workBoth, workBatchAgain: workBatch,
}

// benchApplication starts a PostgreSQL and measures. The name is the server's.
func benchApplication(ctx context.Context, opt options, say func(string, ...any)) (a *Application, name string, err error) {
	server, err := pgserver.Start(ctx, pgserver.Options{Log: say, Settings: map[string]string{
		// fsync stays on: durable commits are what is measured.
		"max_wal_size": "20GB", "checkpoint_timeout": "1h", "shared_buffers": "512MB", "autovacuum": "off",
	}})
	if err != nil {
		return nil, "", err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	conn, count, err := connectCounted(ctx, server.DSN(database))
	if err != nil {
		return nil, "", err
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	if _, err := outbox.Migrate(ctx, conn, outbox.MigrateOptions{}); err != nil {
		return nil, "", err
	}
	for _, sql := range []string{
		`create table effects (event_id uuid primary key, aggregate_id text not null, version bigint not null)`,
		`create table orders (id text primary key, version bigint not null)`,
		`insert into orders values ('1', 0)`,
	} {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return nil, "", err
		}
	}
	var fsync string
	if err := conn.QueryRow(ctx, `show fsync`).Scan(&fsync); err != nil {
		return nil, "", err
	}
	if fsync != "on" {
		return nil, "", errors.New("fsync is off: durable commits cannot be measured")
	}
	rounds := max(opt.runs, leastRounds)
	a = &Application{}
	if a.Trips, err = countTrips(ctx, conn, count); err != nil {
		return nil, "", fmt.Errorf("round trips: %w", err)
	}
	if a.Copy, err = compareCopy(ctx, conn, rounds); err != nil {
		return nil, "", fmt.Errorf("copy: %w", err)
	}
	say("round trips counted, Copy compared")
	for _, set := range []struct {
		mode string
		work *[]Work
	}{{"on", &a.Durable}, {"off", &a.Async}} {
		if _, err := conn.Exec(ctx, `set synchronous_commit = `+set.mode); err != nil {
			return nil, "", err
		}
		if *set.work, err = compareConsumers(ctx, conn, rounds); err != nil {
			return nil, "", fmt.Errorf("consumer: %w", err)
		}
		say("consumer measured, synchronous_commit = %s", set.mode)
	}
	return a, server.String(), nil
}

// compareConsumers measures all kinds of work in each round, beginning with
// another one each time.
func compareConsumers(ctx context.Context, conn *pgx.Conn, rounds int) ([]Work, error) {
	b, err := newConsumerBench(conn)
	if err != nil {
		return nil, err
	}
	kinds := b.kinds()
	micros := map[string][]float64{}
	for round := range rounds + 1 { // the first one warms up
		for i := range kinds {
			k := kinds[(i+round)%len(kinds)]
			names, took, err := k.run(ctx)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", names[0], err)
			}
			if round > 0 {
				for j, name := range names {
					micros[name] = append(micros[name], float64(took[j])/float64(time.Microsecond)/perRound)
				}
			}
		}
	}
	var list []Work
	for _, k := range kinds {
		for _, name := range k.names {
			w := Work{What: name, Micros: stat(micros[name]), To: compared[name]}
			if w.To != "" {
				ratios := make([]float64, rounds)
				for i := range ratios {
					ratios[i] = micros[name][i] / micros[w.To][i]
				}
				w.Ratio = stat(ratios)
			}
			list = append(list, w)
		}
	}
	return list, nil
}

// ratio of the work with durable commits, nil if there is none.
func (a *Application) ratio(what string) *float64 {
	for _, w := range a.Durable {
		if w.What == what {
			return median(w.Ratio)
		}
	}
	return nil
}

// micros of the work with durable commits.
func (a *Application) micros(what string) *float64 {
	for _, w := range a.Durable {
		if w.What == what {
			return median(w.Micros)
		}
	}
	return nil
}

// more is how many round trips something takes more than something else.
func (a *Application) more(what, than string) *float64 {
	var n [2]*int
	for i := range a.Trips {
		switch t := &a.Trips[i]; t.What {
		case what:
			n[0] = &t.N
		case than:
			n[1] = &t.N
		}
	}
	if n[0] == nil || n[1] == nil {
		return nil
	}
	v := float64(*n[0] - *n[1])
	return &v
}

// applicationFloors are those of the application's side; a is nil when it was
// not measured.
func applicationFloors(a *Application) []Floor {
	if a == nil {
		return nil
	}
	list := []Floor{
		{Name: "round trips that an event adds to a transaction", Limit: 1, Value: a.more(tripsWrite, tripsPlain)},
		{Name: "round trips that 100 events add to a transaction", Limit: 1, Value: a.more(tripsWriteMany, tripsPlain)},
		{Name: "Copy against single inserts, events per second", Least: true, Limit: 5, Value: median(a.Copy)},
	}
	for _, name := range []string{workID, workBoth, workVersion} {
		list = append(list, Floor{Name: name + ", against the side effect alone", Limit: 1.5, Value: a.ratio(name)})
	}
	for _, name := range []string{workIDAgain, workBothAgain, workVersionAgain} {
		list = append(list, Floor{Name: name + ", against an applied message", Limit: 0.3, Value: a.ratio(name)})
	}
	batch, alone := a.micros(workBatch), a.micros(workPlain)
	var whole *float64
	if batch != nil && alone != nil {
		v := *batch / *alone
		whole = &v
	}
	return append(list,
		Floor{Name: workBatch + ", a message against the side effect alone", Limit: 1.5, Value: whole},
		Floor{Name: workBatchAgain + ", against an applied message", Limit: 0.3, Value: a.ratio(workBatchAgain)})
}

// print writes the tables for people.
func (a *Application) print(w io.Writer) error {
	t := &table{left: 1}
	t.add("application: round trips", "")
	for _, c := range a.Trips {
		t.add(c.What, number(float64(c.N), 0))
	}
	if err := t.print(w); err != nil {
		return err
	}
	if a.Copy != nil {
		if _, err := fmt.Fprintf(w, "\napplication: %d events in one transaction, Copy against single inserts: %s times as fast (%s to %s)\n",
			copied, number(a.Copy.Median, 1), number(a.Copy.Min, 1), number(a.Copy.Max, 1)); err != nil {
			return err
		}
	}
	for _, set := range []struct {
		title string
		work  []Work
	}{{"application: durable commits", a.Durable}, {"application: synchronous_commit = off", a.Async}} {
		if _, err := fmt.Fprintln(w); err != nil {
			return err
		}
		t := &table{left: 1}
		t.add(set.title, "µs per message", "min", "max", "ratio", "min", "max")
		for _, k := range set.work {
			cells := []string{k.What, number(k.Micros.Median, 0), number(k.Micros.Min, 0), number(k.Micros.Max, 0)}
			if k.Ratio != nil {
				cells = append(cells, number(k.Ratio.Median, 2), number(k.Ratio.Min, 2), number(k.Ratio.Max, 2))
			}
			t.add(cells...)
		}
		if err := t.print(w); err != nil {
			return err
		}
	}
	return nil
}
