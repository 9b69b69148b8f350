package slot

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
	"go.uber.org/zap"

	"github.com/walpost/walpost/internal/failpoint"
	"github.com/walpost/walpost/internal/pg"
)

// StreamOptions say what to stream from where.
type StreamOptions struct {
	Config      *pgx.ConnConfig
	Slot        string
	Publication string
	Application string // application_name, shown by pg_stat_replication
	// Known is the history that earlier positions of this process belong to, and
	// the newest of them that is settled. Streaming starts there, even if a
	// server crash took the slot back. Zero: the slot's own position.
	Known History
	// Remembered tells what an earlier process left behind, once that is read. It
	// may be newer than the slot, which a server crash takes back; it is used when
	// the server's WAL provably contains it, and otherwise reported and ignored.
	// Nil: nothing was left.
	Remembered func() (History, error)
	// Tables must be in the publication; when Expected is set, the same ones as
	// then.
	Tables   []Table
	Expected *Published
	// Fits says at the first start whether a table's columns make an event.
	Fits func(*Definition) error
	// Unmoved leaves the slot where it is: nothing is confirmed, wherever the
	// stream starts.
	Unmoved bool
	// Messages asks for logical messages too (pg_logical_emit_message).
	Messages bool
	// StatusInterval bounds the time between two status updates; it is lowered
	// to a third of wal_sender_timeout. Default and maximum 10 s.
	StatusInterval time.Duration
	// ConfirmInterval bounds how soon after another a moved position is sent.
	// Default 100 ms.
	ConfirmInterval time.Duration
	Log             *zap.Logger
}

// Stream is one replication session on a slot.
//
// Whose the memory is: a Message's Data is a piece of the buffer that the
// connection is read into. It belongs to the caller of Receive until the next
// call; whoever wants to keep something of it copies.
//
// Receive belongs to one goroutine. A second one, owned by the Stream, sends
// status updates, so that a reader that is held up does not make the server
// think we are gone. No read has a deadline: a context that ends in a read
// would set the deadline of the whole connection and tear a status update that
// is being written apart. To stop, call Close or Abort.
//
// Invariant I5: the flush position never goes backwards, and all three
// positions are always set explicitly. Zero is sent as the flush position only
// where the protocol gives it the meaning "nothing to confirm" (see
// sendStatus); the client library would turn it into the write position.
type Stream struct {
	opt     StreamOptions
	log     *zap.Logger
	conn    *pgconn.PgConn
	history History
	start   pglogrepl.LSN
	tables  *Published
	walEnd  pglogrepl.LSN
	lent    []byte        // the last message's data
	slotAt  pglogrepl.LSN // its position when the stream began

	moved  chan struct{} // the confirmable position moved
	asked  chan struct{} // the server wants an answer now
	stop   chan struct{} // closed by shut
	once   sync.Once
	ended  chan struct{} // closed when Receive returned its last error
	ending sync.Once
	done   chan struct{} // closed when the status goroutine has returned

	mu        sync.Mutex
	received  pglogrepl.LSN // newest position seen: the write position
	confirmed pglogrepl.LSN // may be sent as the flush position
	flushed   pglogrepl.LSN // the newest flush position sent; before the first, where the stream began
	lastSeen  time.Time
	closing   bool

	writing sync.Mutex // one message at a time
}

// walSenderTimeoutDefault is asked for unless the DSN says otherwise: after an
// instance has frozen or its network is gone, the server frees the slot after
// this time instead of the usual minute.
const walSenderTimeoutDefault = "10s"

// readBuffer is the size of the socket reads: pgoutput sends small messages,
// and the default of 8 kB costs a system call for a handful of them.
const readBuffer = 256 << 10

// Open checks the slot and starts to stream. What is wrong with the slot comes
// back as an *Error of this package; other errors are passing faults of the
// connection.
func Open(ctx context.Context, opt StreamOptions) (*Stream, error) {
	if opt.StatusInterval <= 0 || opt.StatusInterval > 10*time.Second {
		opt.StatusInterval = 10 * time.Second
	}
	if opt.ConfirmInterval <= 0 {
		opt.ConfirmInterval = 100 * time.Millisecond
	}
	if opt.Log == nil {
		opt.Log = zap.NewNop()
	}
	side, err := pg.Connect(ctx, once(opt.Config), opt.Application)
	if err != nil {
		return nil, err
	}
	defer func() { _ = side.Close(context.WithoutCancel(ctx)) }()
	s := &Stream{
		opt:   opt,
		log:   opt.Log,
		moved: make(chan struct{}, 1),
		asked: make(chan struct{}, 1),
		stop:  make(chan struct{}),
		ended: make(chan struct{}),
		done:  make(chan struct{}),
	}
	info, err := preflight(ctx, side, opt)
	if err != nil {
		return nil, err
	}
	if info.ConfirmedFlushLSN != nil {
		s.confirmed = *info.ConfirmedFlushLSN
	}
	s.confirmed = max(s.confirmed, opt.Known.LSN)
	conf := pg.ReplicationConfig(opt.Config, opt.Application)
	conf.BuildFrontend = func(r io.Reader, w io.Writer) *pgproto3.Frontend {
		return pgproto3.NewFrontend(bufio.NewReaderSize(r, readBuffer), w)
	}
	conf.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) {
		s.log.Warn("notice from PostgreSQL", zap.String("sqlstate", n.Code), zap.String("notice", n.Message))
	}
	if _, set := conf.RuntimeParams["wal_sender_timeout"]; !set && !strings.Contains(conf.RuntimeParams["options"], "wal_sender_timeout") {
		conf.RuntimeParams["wal_sender_timeout"] = walSenderTimeoutDefault
	}
	if err = s.connect(ctx, conf, side); err != nil {
		return nil, err
	}
	err = s.begin(ctx, info)
	if err == nil {
		err = s.settle(ctx, side)
	}
	if err != nil {
		_ = s.conn.Close(ctx)
		return nil, err
	}
	go s.statusLoop()
	return s, nil
}

// Published is the publication with the outbox tables, as it was found at the
// start.
func (s *Stream) Published() *Published { return s.tables }

// begin checks where we are and sends START_REPLICATION.
func (s *Stream) begin(ctx context.Context, info *Info) error {
	// First: it must not be newer than the end of the WAL that is asked for here.
	var remembered History
	if s.opt.Remembered != nil {
		var err error
		if remembered, err = s.opt.Remembered(); err != nil {
			return err
		}
	}
	id, err := pglogrepl.IdentifySystem(ctx, s.conn)
	if err != nil {
		return fmt.Errorf("identify system: %w", err)
	}
	s.walEnd = id.XLogPos
	// The two connections may have reached two servers of the DSN.
	if info.SystemID != "" && info.SystemID != id.SystemID || id.XLogPos < s.confirmed {
		return &Error{
			Kind: ErrForeign,
			Text: fmt.Sprintf("the slot's position %s is not in the WAL of the server that was reached: system identifier %s, at %s", s.confirmed, id.SystemID, id.XLogPos),
			Way:  "make all hosts of the DSN lead to one cluster, and its primary",
		}
	}
	if err := s.opt.Known.check(id, s.timelineFile(ctx, id)); err != nil {
		return err
	}
	if err := s.remember(ctx, remembered, id); err != nil {
		return err
	}
	s.start, s.received, s.flushed = s.confirmed, s.confirmed, s.confirmed
	s.history = History{SystemID: id.SystemID, Timeline: id.Timeline, LSN: s.start}
	timeout, err := walSenderTimeout(ctx, s.conn)
	if err != nil {
		return err
	}
	if timeout > 0 {
		s.opt.StatusInterval = min(s.opt.StatusInterval, timeout/3)
	}
	arguments := []string{
		"proto_version '1'",
		"publication_names " + pg.QuoteLiteral(pg.QuoteIdent(s.opt.Publication)),
	}
	if s.opt.Messages {
		arguments = append(arguments, "messages 'true'")
	}
	err = pglogrepl.StartReplication(ctx, s.conn, pg.QuoteIdent(s.opt.Slot), s.start, pglogrepl.StartReplicationOptions{PluginArgs: arguments})
	if err != nil {
		return s.typed(ctx, err)
	}
	return nil
}

// timelineFile asks for the history file of the server's timeline.
func (s *Stream) timelineFile(ctx context.Context, id pglogrepl.IdentifySystemResult) func() (string, error) {
	return func() (string, error) {
		file, err := pglogrepl.TimelineHistory(ctx, s.conn, id.Timeline)
		return string(file.Content), err
	}
}

// remember starts at the remembered position where that is newer than the
// slot's and belongs to the same history.
func (s *Stream) remember(ctx context.Context, r History, id pglogrepl.IdentifySystemResult) error {
	if r.SystemID == "" || r.LSN <= s.confirmed {
		return nil
	}
	err := r.check(id, s.timelineFile(ctx, id))
	if foreign := (*Error)(nil); errors.As(err, &foreign) {
		s.log.Warn("the checkpoint is not of this server's history; the slot's position is used",
			zap.Stringer("checkpoint_lsn", r.LSN), zap.Stringer("slot_lsn", s.confirmed), zap.Error(err))
		return nil
	}
	if err != nil {
		return err
	}
	s.log.Info("the slot is behind the checkpoint, as after a server crash; the checkpoint is used",
		zap.Stringer("checkpoint_lsn", r.LSN), zap.Stringer("slot_lsn", s.confirmed))
	s.confirmed = r.LSN
	return nil
}

// WALEnd is where the server's WAL ended when the slot had become ours: whoever
// had it before was sent nothing beyond.
func (s *Stream) WALEnd() pglogrepl.LSN { return s.walEnd }

// A walsender sends what is flushed, or on a standby what is replayed.
const settledSQL = `
select confirmed_flush_lsn::text,
       (case when pg_is_in_recovery() then coalesce(pg_last_wal_replay_lsn(), '0/0') else pg_current_wal_flush_lsn() end)::text
  from pg_catalog.pg_replication_slots where slot_name = $1`

// settle reads the slot's position and the end of the WAL again, now that nobody
// else can move the slot or is sent anything from it: between the first look and
// START_REPLICATION another instance may have gone on and stopped. The server
// begins at the newer position whatever we asked for.
func (s *Stream) settle(ctx context.Context, side *pgx.Conn) error {
	var confirmed, current string
	if err := side.QueryRow(ctx, settledSQL, s.opt.Slot).Scan(&confirmed, &current); err != nil {
		return describe("read the slot's position", err)
	}
	now, err := pglogrepl.ParseLSN(confirmed)
	if err != nil {
		return fmt.Errorf("read the slot's position: %w", err)
	}
	end, err := pglogrepl.ParseLSN(current)
	if err != nil {
		return fmt.Errorf("read the end of the WAL: %w", err)
	}
	s.walEnd = max(s.walEnd, end)
	s.slotAt = now
	if now > s.start {
		s.start, s.received, s.confirmed, s.flushed = now, now, now, now
		s.history.LSN = now
	}
	return nil
}

func walSenderTimeout(ctx context.Context, conn *pgconn.PgConn) (time.Duration, error) {
	const query = `select setting from pg_catalog.pg_settings where name = 'wal_sender_timeout'`
	results, err := conn.Exec(ctx, query).ReadAll()
	if err != nil {
		return 0, fmt.Errorf("read wal_sender_timeout: %w", err)
	}
	if len(results) != 1 || len(results[0].Rows) != 1 {
		return 0, errors.New("read wal_sender_timeout: unexpected answer")
	}
	ms, err := time.ParseDuration(string(results[0].Rows[0][0]) + "ms")
	if err != nil {
		return 0, fmt.Errorf("read wal_sender_timeout: %w", err)
	}
	return ms, nil
}

// History is what this stream's positions belong to; its LSN is where the
// stream started.
func (s *Stream) History() History { return s.history }

// Confirm lets the server forget everything below lsn, with the next status
// update. Positions only grow; an older one is ignored.
func (s *Stream) Confirm(lsn pglogrepl.LSN) {
	s.mu.Lock()
	grew := lsn > s.confirmed
	if grew {
		s.confirmed = lsn
		s.received = max(s.received, lsn)
	}
	s.mu.Unlock()
	if grew {
		select {
		case s.moved <- struct{}{}:
		default:
		}
	}
}

// Positions are the newest position received and the newest flush position sent
// (before the first, where the stream began), with the time of the last message
// from the server.
func (s *Stream) Positions() (received, flushed pglogrepl.LSN, lastSeen time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.received, s.flushed, s.lastSeen
}

// Close sends a last status update with what is confirmable, ends the copy and
// closes the connection. Somebody must be in Receive, or call it until it
// returns ErrClosed: the server's answer to the end of the copy proves that it
// has read the update. When ctx ends first, the connection is closed anyway.
func (s *Stream) Close(ctx context.Context) error {
	s.mu.Lock()
	s.closing = true
	s.mu.Unlock()
	// A server that has stopped reading would hold a write for ever, ours or the
	// one of the status goroutine that we wait for.
	inTime := context.AfterFunc(ctx, s.cut)
	err := s.finish(ctx)
	if !inTime() {
		err = fmt.Errorf("close replication stream: %w", ctx.Err())
	}
	s.Abort()
	return err
}

// finish says the last words, and waits for the answer as long as ctx lasts.
func (s *Stream) finish(ctx context.Context) error {
	if err := s.sendStatus(false); err != nil {
		return err
	}
	if err := failpoint.Fail("slot.before-copy-done"); err != nil {
		return err
	}
	if err := s.copyDone(); err != nil {
		return err
	}
	select {
	case <-s.ended:
	case <-ctx.Done():
	}
	return nil
}

// Done is closed when the connection is gone, whoever ended it. Who does not
// call Receive for a while learns of it here, some seconds later than there.
func (s *Stream) Done() <-chan struct{} { return s.done }

// Abort closes the connection at once. Receive returns ErrClosed. The slot keeps
// the position of the last status update.
func (s *Stream) Abort() {
	s.cut()
	<-s.done
}

// cut ends reads and writes that wait for the server.
func (s *Stream) cut() {
	s.once.Do(func() { close(s.stop) })
	_ = s.conn.Conn().Close()
}
