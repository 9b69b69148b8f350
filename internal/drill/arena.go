package drill

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/walpost/walpost/internal/pg"
	"github.com/walpost/walpost/internal/retry"
	"github.com/walpost/walpost/internal/setup"
	"github.com/walpost/walpost/outbox"
	"github.com/walpost/walpost/slot"
)

const application = "walpost/drill"

// arena is everything that one drill has made.
type arena struct {
	opt    Options
	name   string
	topic  string
	proxy  *proxy
	broker *broker
	conn   *pgx.Conn
	groups []string
	child  *child // the relay, when there is one
}

func newArena(opt Options) (*arena, error) {
	p, err := newProxy()
	if err != nil {
		return nil, err
	}
	id := random()
	a := &arena{opt: opt, name: prefix + id, topic: topicPrefix + id, proxy: p}
	a.broker = newBroker(opt, a.topic)
	return a, nil
}

// table quotes the name of one of the drill's tables.
func (a *arena) table(name string) string { return pg.QuoteQualified(a.name, name) }

func (a *arena) make(ctx context.Context) error {
	conn, err := pg.Connect(ctx, a.opt.Conn, application)
	if err != nil {
		return err
	}
	a.conn = conn
	if _, err := conn.Exec(ctx, "select pg_advisory_lock(hashtextextended($1, 0))", a.name); err != nil {
		return err
	}
	outboxTable, err := outbox.Statements(outbox.SchemaOptions{Parts: outbox.Table, Table: a.name + ".outbox_events", Payload: "json"})
	if err != nil {
		return err
	}
	for _, statement := range []string{
		"create schema " + pg.QuoteIdent(a.name),
		"create table " + a.table("aggregates") + " (id text primary key, version bigint not null)",
		// Without what follows: its triggers need the guard in the shared schema walpost.
		outboxTable[0],
		"create table " + a.table("effects") + " (n bigint generated always as identity, event_id uuid not null, aggregate_id text not null, version bigint not null)",
	} {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return a.denied("make the drill's schema", err)
		}
	}
	if _, err := outbox.Migrate(ctx, conn, outbox.MigrateOptions{SchemaOptions: outbox.SchemaOptions{
		Parts: outbox.Consumption, Schema: a.name,
	}}); err != nil {
		return a.denied("make the drill's tables", err)
	}
	if _, err := setup.Run(ctx, a.opt.Conn, setup.Options{
		Slot: a.name, Publication: a.name, Tables: []slot.Table{{Schema: a.name, Name: "outbox_events"}}, Wait: 20 * time.Second,
	}); err != nil {
		return err
	}
	return a.broker.create(ctx)
}

func (a *arena) denied(doing string, err error) error {
	way := "look at the server's log"
	if pg.SQLState(err) == "42501" {
		way = fmt.Sprintf("the role needs CREATE on the database: grant create on database %s to %s; and the attribute REPLICATION",
			pg.QuoteIdent(a.opt.Conn.Database), pg.QuoteIdent(a.opt.Conn.User))
	}
	return &Error{Text: doing, Way: way, Err: err}
}

// close removes everything, in whatever state it is.
func (a *arena) close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	a.kill()
	a.proxy.close()
	defer a.broker.close()
	if a.conn != nil {
		_ = a.conn.Close(ctx)
	}
	if a.opt.Keep {
		return nil
	}
	var errs []error
	// The schema goes last: it is what a leftover is recognised by.
	errs = append(errs, a.broker.drop(ctx, a.groups))
	if a.conn != nil {
		errs = append(errs, dropDatabase(ctx, a.opt.Conn, a.name))
	}
	if err := errors.Join(errs...); err != nil {
		return &Error{Text: "clean up after the drill", Way: fmt.Sprintf(`drop slot, publication and schema %s and topic %s, or run "walpost drill clean"`, a.name, a.topic), Err: err}
	}
	return nil
}

// dropDatabase removes what a drill of that name has made in PostgreSQL.
func dropDatabase(ctx context.Context, cfg *pgx.ConnConfig, name string) error {
	if !strings.HasPrefix(name, prefix) {
		return fmt.Errorf("%q is not a drill's", name)
	}
	conn, err := pg.Connect(ctx, cfg, application)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	var errs []error
	for {
		_, err := conn.Exec(ctx, "select pg_drop_replication_slot(slot_name) from pg_replication_slots where slot_name = $1", name)
		if pg.SQLState(err) != "55006" { // in use: the walsender of a killed child needs a moment
			errs = append(errs, err)
			break
		}
		_, _ = conn.Exec(ctx, "select pg_terminate_backend(active_pid) from pg_replication_slots where slot_name = $1 and active_pid is not null", name)
		if err := retry.Wait(ctx, 50*time.Millisecond); err != nil {
			errs = append(errs, err)
			break
		}
	}
	for _, statement := range []string{
		"drop publication if exists " + pg.QuoteIdent(name),
		"drop schema if exists " + pg.QuoteIdent(name) + " cascade",
	} {
		_, err := conn.Exec(ctx, statement)
		errs = append(errs, err)
	}
	// A relay notes its progress where the database has the tables for it.
	for _, table := range []string{"walpost.checkpoint_offset", "walpost.checkpoint"} {
		var there bool
		if err := conn.QueryRow(ctx, "select to_regclass($1) is not null", table).Scan(&there); err == nil && there {
			_, err := conn.Exec(ctx, "delete from "+table+" where slot = $1", name)
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// child is a process that ends with this one.
type child struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	out   strings.Builder
	log   strings.Builder
	done  chan struct{}
	err   error
}

func (a *arena) start(role string, events int) (*child, error) {
	cmd, err := a.opt.Command(role)
	if err != nil {
		return nil, err
	}
	spec, err := json.Marshal(Spec{Config: a.opt.Config, Name: a.name, Topic: a.topic, Proxy: a.proxy.listener.Addr().String(), Events: events})
	if err != nil {
		return nil, err
	}
	c := &child{cmd: cmd, done: make(chan struct{})}
	if c.stdin, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	cmd.Stdout, cmd.Stderr = &c.out, &c.log
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the %s: %w", role, err)
	}
	go func() { // ends with the process, which kill waits for
		c.err = cmd.Wait()
		close(c.done)
	}()
	if _, err := c.stdin.Write(append(spec, '\n')); err != nil {
		c.kill()
		return nil, fmt.Errorf("tell the %s what to do: %w", role, err)
	}
	return c, nil
}

func (c *child) kill() {
	_ = c.cmd.Process.Kill()
	<-c.done
	_ = c.stdin.Close()
}

// startRelay starts the relay child; kill ends it.
func (a *arena) startRelay() (err error) {
	a.child, err = a.start(RoleRelay, 0)
	return err
}

func (a *arena) kill() {
	if a.child != nil {
		a.child.kill()
		a.child = nil
	}
}

// await asks until it is so, and gives up after limit, which is no error: the
// oracle tells what is missing.
func (a *arena) await(ctx context.Context, limit time.Duration, so func() (bool, error)) (bool, error) {
	end := time.Now().Add(limit)
	for {
		ok, err := so()
		if ok || err != nil {
			return ok, err
		}
		if a.child != nil {
			select {
			case <-a.child.done:
				return false, &Error{Text: "the relay child ended: " + lastLine(a.child.log.String()), Way: "check rights on slot and topic", Err: a.child.err}
			default:
			}
		}
		if time.Now().After(end) {
			return false, nil
		}
		if err := retry.Wait(ctx, 20*time.Millisecond); err != nil {
			return false, err
		}
	}
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}
