package slot

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/walpost/walpost/internal/pg"
)

// SnapshotOptions say what to look at.
type SnapshotOptions struct {
	Config      *pgx.ConnConfig
	Application string
	// Slot is the one that will be streamed from.
	Slot     string
	Failover bool // for a slot that is made; 17 and later
	// Wait bounds how long open transactions are waited for. Default 30 s.
	Wait time.Duration
	// Existing says that the slot is there and stays as it is: what it will give
	// overlaps with the snapshot.
	Existing bool
	// NoSlot says that MakeSlot is not going to be called.
	NoSlot bool
	// Tables are those that Rows will be asked for.
	Tables []*Definition
	// Check looks whether a snapshot is still wanted, now that no other instance
	// can begin or end one; nil: it is.
	Check func(context.Context, *pgx.Conn) error
}

// Snapshot is what the database holds at one position of the WAL: the rows of
// every transaction that committed before it, and of no other.
//
// It is taken with a temporary slot, which keeps the WAL from there on. When
// everything is delivered, MakeSlot makes the permanent slot at that very
// position. A process that dies before leaves no slot behind, and so nothing
// that would look as if the rows had been delivered.
//
// It is not safe for concurrent use.
type Snapshot struct {
	opt       SnapshotOptions
	repl      *pgconn.PgConn // owns the temporary slot
	conn      *pgx.Conn      // in a transaction with the snapshot
	temporary string
	history   History
	taken     time.Time
	version   int
	confirmed pglogrepl.LSN // of a slot that is there
}

// OpenSnapshot waits until every transaction that was open before has ended,
// and takes the snapshot. It needs one free slot, and MakeSlot another one. What
// is wrong with the server comes back as an *Error.
func OpenSnapshot(ctx context.Context, opt SnapshotOptions) (*Snapshot, error) {
	if err := CheckName(opt.Slot); err != nil {
		return nil, err
	}
	if opt.Wait <= 0 {
		opt.Wait = 30 * time.Second
	}
	s := &Snapshot{opt: opt}
	if err := s.open(ctx); err != nil {
		s.Close(ctx)
		return nil, err
	}
	return s, nil
}

func (s *Snapshot) open(ctx context.Context) error {
	var err error
	if s.conn, err = pg.Connect(ctx, s.opt.Config, s.opt.Application); err != nil {
		return err
	}
	if s.version, err = CheckServer(ctx, s.conn); err != nil {
		return err
	}
	if _, err := s.conn.Exec(ctx, s.settings()); err != nil {
		return describe("take a snapshot", err)
	}
	if err := s.lock(ctx); err != nil {
		return err
	}
	if s.opt.Check != nil {
		if err := s.opt.Check(ctx, s.conn); err != nil {
			return err
		}
	}
	if err := s.checkCapacity(ctx); err != nil {
		return err
	}
	files, err := s.files(ctx)
	if err != nil {
		return err
	}
	conf := pg.ReplicationConfig(s.opt.Config, s.opt.Application)
	conf.RuntimeParams["statement_timeout"] = fmt.Sprint(s.opt.Wait.Milliseconds())
	conf.RuntimeParams["lock_timeout"] = fmt.Sprint(s.opt.Wait.Milliseconds())
	if s.repl, err = pg.ConnectReplication(ctx, conf); err != nil {
		return err
	}
	if _, err := s.repl.Exec(ctx, s.settings()).ReadAll(); err != nil {
		return describe("take a snapshot", err)
	}
	id, err := pglogrepl.IdentifySystem(ctx, s.repl)
	if err != nil {
		return describe("identify system", err)
	}
	s.temporary = fmt.Sprintf("walpost_snapshot_%d", s.repl.PID())
	created, err := pglogrepl.CreateReplicationSlot(ctx, s.repl, s.temporary, "pgoutput", pglogrepl.CreateReplicationSlotOptions{
		Temporary: true, SnapshotAction: "EXPORT_SNAPSHOT", Mode: pglogrepl.LogicalReplication,
	})
	if err != nil {
		return passes(createFailed(ctx, s.conn, CreateOptions{Name: s.temporary, Wait: s.opt.Wait}, err))
	}
	lsn, err := pglogrepl.ParseLSN(created.ConsistentPoint)
	if err != nil {
		return describe("take a snapshot", err)
	}
	s.history = History{SystemID: id.SystemID, Timeline: id.Timeline, LSN: lsn}
	// The exported snapshot is gone with the next command on that connection.
	for _, statement := range []string{
		"set statement_timeout = 0",
		"begin isolation level repeatable read read only",
		"set transaction snapshot " + pg.QuoteLiteral(created.SnapshotName),
	} {
		if _, err := s.conn.Exec(ctx, statement); err != nil {
			return describe("take a snapshot", err)
		}
	}
	for _, def := range s.opt.Tables {
		// What cannot be read is found before anything is published. And from here on
		// whoever would rewrite or truncate a table waits: to an older snapshot, one
		// that was rewritten since looks empty.
		if _, err := s.conn.Exec(ctx, selectRows(def, nil)+" limit 0"); err != nil {
			return s.denied(describe("read "+def.String(), err))
		}
	}
	if now, err := s.files(ctx); err != nil {
		return err
	} else if now != files {
		return &Error{Kind: ErrInUse, Text: "a table was rewritten while the snapshot was taken", Way: "it is taken again"}
	}
	if err := s.conn.QueryRow(ctx, "select now()").Scan(&s.taken); err != nil {
		return describe("take a snapshot", err)
	}
	return nil
}

// lock keeps other instances away: there is no slot yet that could.
func (s *Snapshot) lock(ctx context.Context) error {
	var ours bool
	err := s.conn.QueryRow(ctx, "select pg_try_advisory_lock(hashtextextended('walpost snapshot ' || $1, 0))", s.opt.Slot).Scan(&ours)
	if err != nil {
		return describe("take a snapshot", err)
	}
	if !ours {
		return &Error{Kind: ErrInUse, Text: "another instance takes the snapshot for slot " + quote(s.opt.Slot), Way: "this one waits"}
	}
	info, err := Inspect(ctx, s.conn, s.opt.Slot)
	if err != nil {
		return err
	}
	if info.Exists && !s.opt.Existing {
		return &Error{Kind: ErrInUse, Text: "slot " + quote(s.opt.Slot) + " was made by another instance", Way: "this one waits for it"}
	}
	if info.Exists && info.Active {
		return &Error{Kind: ErrInUse, Text: "slot " + quote(s.opt.Slot) + " is in use", Way: "this one waits for it"}
	}
	if info.ConfirmedFlushLSN != nil {
		s.confirmed = *info.ConfirmedFlushLSN
	}
	return nil
}

// Start is where the stream from the slot will begin: the snapshot's position,
// or the slot's if it is there.
func (s *Snapshot) Start() pglogrepl.LSN {
	if s.opt.Existing {
		return s.confirmed
	}
	return s.history.LSN
}

// History gives the snapshot's position and what it belongs to.
func (s *Snapshot) History() History { return s.history }

// Taken is the server's clock when the snapshot was taken.
func (s *Snapshot) Taken() time.Time { return s.taken }

// Rows reads a table and hands each row to each: the columns of def, in their
// order, as the type's output function prints them, nil for NULL. They are valid
// until each returns. An error of each ends it. Memory does not grow with the
// table.
//
// The order is as near to that in which the rows were written as the table can
// tell: by the column that a sequence fills; else by the primary key, unless that
// is a UUID, which says nothing; else as they lie in the table.
func (s *Snapshot) Rows(ctx context.Context, def *Definition, each func(row [][]byte) error) error {
	var key []string
	if err := s.conn.QueryRow(ctx, orderSQL, int64(def.OID)).Scan(&key); err != nil {
		return describe("look up the order of "+def.String(), err)
	}
	statement := selectRows(def, key)
	reader := s.conn.PgConn().ExecParams(ctx, statement, nil, nil, nil, nil)
	for reader.NextRow() {
		if err := each(reader.Values()); err != nil {
			// Waiting for the rest would read it all; the connection goes.
			s.Close(context.WithoutCancel(ctx))
			return err
		}
	}
	if _, err := reader.Close(); err != nil {
		return describe("read "+def.String(), err)
	}
	return nil
}

// MakeSlot makes the permanent slot at the snapshot's position, unless it is
// there. It does nothing else to the snapshot.
func (s *Snapshot) MakeSlot(ctx context.Context) error {
	if s.opt.Existing {
		return nil
	}
	doing := "create slot " + quote(s.opt.Slot)
	statement := "select pg_copy_logical_replication_slot(" + pg.QuoteLiteral(s.temporary) + ", " + pg.QuoteLiteral(s.opt.Slot) + ", false)"
	if _, err := s.repl.Exec(ctx, statement).ReadAll(); err != nil {
		if e, ok := errors.AsType[*pgconn.PgError](err); ok && e.Code == "42710" {
			return &Error{
				Kind: ErrInUse, Text: doing, SQLState: e.Code, Err: err,
				Way: "another instance made it; this one waits for the slot",
			}
		}
		return createFailed(ctx, s.conn, CreateOptions{Name: s.opt.Slot, Wait: s.opt.Wait}, err)
	}
	if !s.opt.Failover || s.version < 170000 {
		return nil
	}
	alter := "ALTER_REPLICATION_SLOT " + pg.QuoteIdent(s.opt.Slot) + " ( FAILOVER true )"
	if _, err := s.repl.Exec(ctx, alter).ReadAll(); err != nil {
		// Another attempt would take it for a slot that is as it should be.
		_, _ = s.repl.Exec(ctx, "select pg_drop_replication_slot("+pg.QuoteLiteral(s.opt.Slot)+")").ReadAll()
		return describe(doing+": failover", err)
	}
	return nil
}

// Close ends the transaction and drops the temporary slot.
func (s *Snapshot) Close(ctx context.Context) {
	if s.conn != nil {
		_ = s.conn.Close(ctx)
	}
	if s.repl != nil {
		_ = s.repl.Close(ctx)
	}
}
