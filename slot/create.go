package slot

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/walpost/walpost/internal/pg"
)

const requirementsSQL = `
select current_setting('server_version_num')::int, current_setting('server_version'),
       current_setting('wal_level'), pg_is_in_recovery()`

const capacitySQL = `
select (select count(*) from pg_replication_slots), current_setting('max_replication_slots')::int`

// CheckServer says whether the server can have the slot of a relay, and gives
// its server_version_num. It looks at no privilege.
func CheckServer(ctx context.Context, conn *pgx.Conn) (version int, err error) {
	var name, level string
	var standby bool
	if err := conn.QueryRow(ctx, requirementsSQL).Scan(&version, &name, &level, &standby); err != nil {
		return 0, describe("look at the server", err)
	}
	switch {
	case version < oldestVersion:
		return 0, &Error{
			Kind: ErrServer,
			Text: "PostgreSQL " + name + " is too old",
			Way:  "upgrade to 14 or later",
		}
	case standby:
		return 0, &Error{
			Kind: ErrServer,
			Text: "the server is a standby",
			Way:  "connect to the primary: publication and slot are made there; list all hosts of the cluster in --dsn to find it",
		}
	case level != "logical":
		return 0, &Error{
			Kind: ErrServer,
			Text: "wal_level is " + quote(level) + ", and logical replication needs \"logical\"",
			Way:  "alter system set wal_level = logical, then restart the server; a managed service has a parameter of its own for it",
		}
	}
	return version, nil
}

// CheckCapacity says whether one more slot can be made.
func CheckCapacity(ctx context.Context, conn *pgx.Conn) error {
	var used, limit int
	if err := conn.QueryRow(ctx, capacitySQL).Scan(&used, &limit); err != nil {
		return describe("count slots", err)
	}
	if used < limit {
		return nil
	}
	return noFreeSlot(used, limit, nil)
}

func noFreeSlot(used, limit int, cause error) *Error {
	return &Error{
		Kind: ErrServer,
		Text: fmt.Sprintf("no replication slot is free: %d of %d are used (max_replication_slots)", used, limit),
		Way: "drop one that nobody needs (select slot_name, active from pg_replication_slots), " +
			"or raise max_replication_slots and restart the server",
		Err: cause,
	}
}

// CreateOptions say what slot to make.
type CreateOptions struct {
	Name string
	// Failover lets standbys synchronize the slot; 17 and later.
	Failover bool
	// Wait bounds how long open transactions are waited for. Default 30 s.
	Wait time.Duration
	// Patient says that whoever calls will try again: to have waited in vain is
	// then an ErrInUse.
	Patient bool
}

const setTimeoutsSQL = `select set_config('lock_timeout', $1, false), set_config('statement_timeout', $1, false)`

// CreateSQL is the statement that Create runs on a server of that version. From
// there on the WAL is kept.
func CreateSQL(name string, failover bool, version int) string {
	if failover && version >= 170000 {
		return "select lsn::text from pg_create_logical_replication_slot(" + pg.QuoteLiteral(name) +
			", 'pgoutput', temporary => false, twophase => false, failover => true)"
	}
	return "select lsn::text from pg_create_logical_replication_slot(" + pg.QuoteLiteral(name) + ", 'pgoutput')"
}

// Create makes the slot and gives the position from which it decodes. The
// publication must exist before: pgoutput looks it up as of the WAL position
// that it decodes. The server waits until every transaction that was open
// before has ended.
func Create(ctx context.Context, conn *pgx.Conn, opt CreateOptions) (pglogrepl.LSN, error) {
	if err := CheckName(opt.Name); err != nil {
		return 0, err
	}
	version, err := CheckServer(ctx, conn)
	if err != nil {
		return 0, err
	}
	if opt.Wait <= 0 {
		opt.Wait = 30 * time.Second
	}
	if _, err := conn.Exec(ctx, setTimeoutsSQL, strconv.FormatInt(opt.Wait.Milliseconds(), 10)); err != nil {
		return 0, describe("create slot "+quote(opt.Name), err)
	}
	var lsn string
	if err := conn.QueryRow(ctx, CreateSQL(opt.Name, opt.Failover, version)).Scan(&lsn); err != nil {
		if err = createFailed(ctx, conn, opt, err); opt.Patient {
			err = passes(err)
		}
		return 0, err
	}
	at, err := pglogrepl.ParseLSN(lsn)
	if err != nil {
		return 0, describe("create slot "+quote(opt.Name), err)
	}
	return at, nil
}

func createFailed(ctx context.Context, conn *pgx.Conn, opt CreateOptions, err error) error {
	doing := "create slot " + quote(opt.Name)
	pe, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		return describe(doing, err)
	}
	e := &Error{Kind: ErrServer, Text: doing, SQLState: pe.Code, Err: err}
	switch pe.Code {
	case "42501":
		e.Kind = ErrDenied
		e.Way = "alter role " + pg.QuoteIdent(conn.Config().User) + " replication (on a managed service grant its replication role), " +
			`or let an administrator run what "walpost init --print" shows`
	case "42710":
		e.Kind = ErrInUse
		e.Way = "somebody else made it at this moment; run it again"
	case "53400":
		var used, limit int
		if conn.QueryRow(ctx, capacitySQL).Scan(&used, &limit) != nil {
			return e
		}
		full := noFreeSlot(used, limit, nil)
		full.SQLState = pe.Code
		return full
	case "55P03", "57014":
		e.Err = nil
		e.Text = fmt.Sprintf("%s: waited %s for transactions that were open before", doing, opt.Wait)
		e.Way = "end them, or let them end, and run it again"
		if oldest, err := oldestTransaction(ctx, conn, 0); err == nil && oldest != nil {
			e.Text += "; the oldest is " + oldest.describe()
			e.Way = oldest.way()
		}
	}
	return e
}

func (p *Pinner) describe() string {
	age := p.Age.Round(time.Second)
	if p.Prepared != "" {
		return fmt.Sprintf("the prepared transaction %q, %s old", p.Prepared, age)
	}
	who := fmt.Sprintf("PID %d", p.PID)
	if p.Application != "" {
		who += " (" + p.Application + ")"
	}
	return fmt.Sprintf("that of %s, %s old", who, age)
}

func (p *Pinner) way() string {
	if p.Prepared != "" {
		return "commit prepared or rollback prepared " + pg.QuoteLiteral(p.Prepared) + ", and run it again"
	}
	return fmt.Sprintf("let it end, or end it (select pg_terminate_backend(%d)), and run it again", p.PID)
}
