// Command discard is what the bench compares walpost's parts with: the relay
// with a sink that counts and throws away, and with -reader a bare reader of the
// slot that stands in for pg_recvlogical. It is a program of its own so that the
// product needs no such sink.
//
// When -events events have come it writes a Result to the file -result, and
// then runs on until it is told to stop.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime/pprof"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/zap"

	"github.com/walpost/walpost/internal/event"
	"github.com/walpost/walpost/internal/metrics"
	"github.com/walpost/walpost/internal/pg"
	"github.com/walpost/walpost/internal/relay"
	"github.com/walpost/walpost/internal/route"
	"github.com/walpost/walpost/internal/wire"
	"github.com/walpost/walpost/sink"
	"github.com/walpost/walpost/slot"
)

type options struct {
	conn        *pgx.ConnConfig
	slot        string
	publication string
	table       slot.Table
	events      uint64
	result      string
	profile     string
	reader      bool
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	var opt options
	var dsn, table string
	flags := flag.NewFlagSet("discard", flag.ContinueOnError)
	flags.StringVar(&dsn, "dsn", "", "connection string")
	flags.StringVar(&opt.slot, "slot", "", "replication slot")
	flags.StringVar(&opt.publication, "publication", "walpost", "publication")
	flags.StringVar(&table, "table", "public.outbox_events", "outbox table")
	flags.Uint64Var(&opt.events, "events", 0, "how many events to wait for")
	flags.StringVar(&opt.result, "result", "", "file for the result")
	flags.StringVar(&opt.profile, "cpuprofile", "", "file for a CPU profile")
	flags.BoolVar(&opt.reader, "reader", false, "read the slot and do nothing else")
	if err := flags.Parse(args); err != nil {
		return err
	}
	var err error
	if opt.table, err = slot.ParseTable(table); err != nil {
		return err
	}
	if opt.conn, err = pg.ParseDSN(dsn); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if opt.profile != "" {
		file, err := os.Create(opt.profile)
		if err != nil {
			return err
		}
		defer file.Close()
		if err := pprof.StartCPUProfile(file); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	count := &counter{want: opt.events, done: func(r Result) error { return write(opt.result, r) }}
	if opt.reader {
		return read(ctx, opt, count)
	}
	return relayed(ctx, opt, count)
}

// relayed runs the product's relay, wired as package wire does it, except for
// the sink and the admin listener.
func relayed(ctx context.Context, opt options, count *counter) error {
	wire.CollectEarly()
	go wire.Processors(ctx) // ends with the process
	log, err := zap.NewProduction(zap.IncreaseLevel(zap.WarnLevel))
	if err != nil {
		return err
	}
	mapper, err := event.NewMapper([]event.Table{{Schema: opt.table.Schema, Table: opt.table.Name}})
	if err != nil {
		return err
	}
	router, err := route.New(route.Options{})
	if err != nil {
		return err
	}
	name := "walpost/" + opt.slot + "/discard"
	tables := []slot.Table{opt.table}
	r, err := relay.New(relay.Options{
		SlotName: opt.slot,
		Instance: "discard",
		Open: func(ctx context.Context, known slot.History, _ func() (slot.History, error), expected *slot.Published) (relay.Stream, error) {
			s, err := slot.Open(ctx, slot.StreamOptions{
				Config: opt.conn, Slot: opt.slot, Publication: opt.publication, Application: name,
				Known: known, Tables: tables, Expected: expected, Fits: wire.Defined(wire.Fits(mapper)), Log: log,
			})
			if err != nil {
				return nil, err // not a typed nil in the interface
			}
			return s, nil
		},
		NewSink: func(acked func([]sink.Ack)) (sink.Sink, error) { return newDiscard(acked, count), nil },
		NewMonitor: func(broken func(error), shutdown func()) relay.Monitor {
			m := slot.NewMonitor(slot.MonitorOptions{
				Config: opt.conn, Slot: opt.slot, Publication: opt.publication, Tables: tables, Application: name, Log: log,
			})
			m.OnPublicationBroken(broken)
			m.OnServerShutdown(shutdown)
			return m
		},
		Translator: route.NewRows(mapper, router), Metrics: metrics.New(metrics.Options{Slot: opt.slot}),
		DrainTimeout: 20 * time.Second, Log: log,
	})
	if err != nil {
		return err
	}
	return errors.Join(r.Run(ctx, context.WithoutCancel(ctx)), count.err())
}

// write is atomic: whoever waits for the file finds it whole.
func write(path string, r Result) error {
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if err := os.WriteFile(path+".new", data, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
