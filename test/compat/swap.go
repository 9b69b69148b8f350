package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/walpost/walpost/internal/testkit/debezium"
)

// swapKeys is how many aggregates the rows of a swap belong to.
const swapKeys = 97

const swapTable = `create table outboxevent (id text primary key, aggregatetype text not null, aggregateid text not null, type text not null, payload jsonb);
create publication swap for table outboxevent;`

// author writes rows without a pause, a few in each transaction. A row's number is
// its id and its payload; its aggregate sees rising numbers.
type author struct {
	written atomic.Int64
	enough  chan struct{} // closed by play
}

func (a *author) run(ctx context.Context, dsn string) error {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	const batch, pace = 20, 15 * time.Millisecond
	tick := time.NewTicker(pace)
	defer tick.Stop()
	for next := int64(1); ; next += batch {
		last := next + batch - 1
		_, err := conn.Exec(ctx, `insert into outboxevent select n, 'Swap', 'key-' || n % $3, 'Written', jsonb_build_object('n', n)
			from generate_series($1::bigint, $2::bigint) n`, next, last, swapKeys)
		if err != nil {
			return err
		}
		a.written.Store(last)
		select {
		case <-tick.C:
		case <-a.enough:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// more waits until so many more rows are written.
func (a *author) more(ctx context.Context, n int) error {
	from := a.written.Load()
	return await(ctx, 5*time.Minute, "rows to be written", func() (bool, error) { return a.written.Load() >= from+int64(n), nil })
}

// swapper is what a swap runs in.
type swapper struct {
	o    *options
	d    *database
	lane *lane
	dir  string
	conn map[string]string // the connector's configuration
	a    *author
}

// runSwap kills a Debezium under load, lets walpost take its slot over, and gives
// it back, while rows are written all the time.
func (o *options) runSwap(ctx context.Context, dir string) (failed int, err error) {
	s, err := startServers(ctx, o.pg, 1, o.log)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	d, err := s.newDatabase(ctx)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, d.drop(context.WithoutCancel(ctx))) }()
	if err := d.execute(ctx, swapTable+"select pg_create_logical_replication_slot('"+d.slot+"', 'pgoutput')"); err != nil {
		return 0, err
	}
	sw := &swapper{o: o, d: d, lane: s.lanes[0], dir: dir, a: &author{enough: make(chan struct{})}}
	if sw.conn, err = debezium.Outbox(s.pg.DSN(d.name), d.slot, "swap", "public.outboxevent"); err != nil {
		return 0, err
	}
	sw.conn["key.converter"], sw.conn["value.converter"] = stringConverter, stringConverter
	var story []string
	group, running := errgroup.WithContext(ctx)
	group.Go(func() error {
		story, err = sw.play(running, group)
		return err
	})
	if err := group.Wait(); err != nil {
		return 0, err
	}
	records, err := sw.lane.quiet(ctx, silence)
	if err != nil {
		return 0, err
	}
	for _, line := range story {
		fmt.Println(line)
	}
	r := judgeSwap(records, sw.a.written.Load())
	fmt.Print(r.String())
	if !r.ok() {
		return 1, nil
	}
	return 0, nil
}

// play is what happens while rows are written.
func (sw *swapper) play(ctx context.Context, group *errgroup.Group) (story []string, err error) {
	tell := func(format string, args ...any) {
		story = append(story, fmt.Sprintf("%7d rows written: ", sw.a.written.Load())+fmt.Sprintf(format, args...))
	}
	options := debezium.Options{
		Name: "swap", Connector: sw.conn, Brokers: sw.lane.brokers(), Dir: filepath.Join(sw.dir, "first"), Home: sw.o.home, Heap: "768m", Log: sw.o.log,
		// Once a minute is the default; five seconds are more than it takes to see what
		// was published and not confirmed.
		Worker: map[string]string{"offset.flush.interval.ms": "5000"},
	}
	first, err := debezium.Start(ctx, options)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, first.Close()) }()
	if err := first.AwaitStreaming(ctx); err != nil {
		return nil, err
	}
	tell("Debezium streams")
	group.Go(func() error { return sw.a.run(ctx, sw.d.servers.pg.SocketDSN(sw.d.name)) })
	if err := sw.a.more(ctx, sw.o.rows); err != nil {
		return nil, err
	}
	if err := first.Kill(ctx); err != nil {
		return nil, err
	}
	confirmed, err := sw.confirmedRow(ctx)
	if err != nil {
		return nil, err
	}
	tell("Debezium killed; it has confirmed the rows up to %d, and what it published after them comes again", confirmed)
	w, err := takeOver(sw.o.binary, sw.dir, connectorFile{"swap", maps.Clone(sw.conn)}, sw.lane.brokers(), filepath.Join(sw.dir, "first", "offsets"))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.close(context.WithoutCancel(ctx))) }()
	if err := sw.awaitReader(ctx, w); err != nil {
		return nil, err
	}
	tell("walpost streams")
	if err := sw.a.more(ctx, sw.o.rows); err != nil {
		return nil, err
	}
	if err := w.stop(ctx); err != nil {
		return nil, fmt.Errorf("stop walpost: %w\n%s", err, tail(w.file("walpost.log")))
	}
	tell("walpost stopped")
	// Its own old offset is behind the slot: it begins without one, at the slot.
	options.Dir = filepath.Join(sw.dir, "second")
	second, err := debezium.Start(ctx, options)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, second.Close()) }()
	if err := second.AwaitStreaming(ctx); err != nil {
		return nil, err
	}
	tell("Debezium streams again")
	if err := sw.a.more(ctx, sw.o.rows); err != nil {
		return nil, err
	}
	close(sw.a.enough)
	tell("no more rows")
	if err := pause(ctx, silence); err != nil {
		return nil, err
	}
	end, err := sw.d.end(ctx)
	if err != nil {
		return nil, err
	}
	err = await(ctx, 2*time.Minute, "PostgreSQL to send everything to Debezium", func() (bool, error) { return sw.d.sent(ctx, end) })
	if err != nil {
		return nil, err
	}
	if _, err := sw.lane.quiet(ctx, silence); err != nil {
		return nil, err
	}
	tell("everything is published")
	return story, nil
}

// confirmedRow is the number of the row up to which the slot is confirmed: all rows
// behind it are sent again.
func (sw *swapper) confirmedRow(ctx context.Context) (n int64, err error) {
	err = await(ctx, patience, "the slot to be free", func() (bool, error) {
		return sw.d.is(ctx, "select not active from pg_replication_slots where slot_name = $1", sw.d.slot)
	})
	if err != nil {
		return 0, err
	}
	rows, err := sw.d.conn.Query(ctx, `select data from pg_logical_slot_peek_binary_changes($1, null, 500,
		'proto_version', '1', 'publication_names', 'swap') where get_byte(data, 0) = 73`, sw.d.slot)
	if err != nil {
		return 0, err
	}
	inserts, err := pgx.CollectRows(rows, pgx.RowTo[[]byte])
	if err != nil || len(inserts) == 0 {
		return sw.a.written.Load(), err
	}
	// I, the table, N, the number of columns; of the first column t, length and text.
	const head = 1 + 4 + 1 + 2 + 1 + 4
	first := inserts[0]
	if len(first) < head || len(first) < head+int(first[head-1]) {
		return 0, fmt.Errorf("not an insert: %x", first)
	}
	n, err = strconv.ParseInt(string(first[head:head+int(first[head-1])]), 10, 64)
	return n - 1, err
}

func (sw *swapper) awaitReader(ctx context.Context, w *walpost) error {
	err := await(ctx, 2*time.Minute, "walpost to take the slot over", func() (bool, error) {
		if !w.running() {
			return false, errors.New("walpost ended: " + w.why())
		}
		return sw.d.streaming(ctx)
	})
	if err != nil {
		return fmt.Errorf("%w\n%s", err, tail(w.file("walpost.log")))
	}
	return nil
}

// takeOver starts walpost on Debezium's slot.
func takeOver(binary, dir string, connector connectorFile, brokers []string, offsets string) (*walpost, error) {
	args := []string{"--topics-create"}
	if _, err := os.Stat(offsets); err == nil {
		args = append(args, "--offset-file", offsets)
	}
	w := &walpost{binary: binary, dir: dir, takeover: true, java: defaultJava, args: args}
	return w, w.open(connector, brokers)
}
