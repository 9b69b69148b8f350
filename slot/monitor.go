package slot

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/zap"

	"github.com/walpost/walpost/internal/pg"
)

// MonitorOptions say what to look at.
type MonitorOptions struct {
	Config           *pgx.ConnConfig
	Slot             string
	Publication      string
	Tables           []Table
	Application      string        // application_name; default "walpost/<slot>/monitor"
	Interval         time.Duration // between two looks; default 10 s
	StatementTimeout time.Duration // default 3 s
	Log              *zap.Logger
	Now              func() time.Time
}

// Observation is what one look at PostgreSQL found.
type Observation struct {
	At   time.Time
	Took time.Duration
	Info *Info // the newest known, also when Err is set; nil before the first
	Err  error // the look failed; nothing is known that is newer than Info
	// Published and PublicationErr are the newest definite answer: at most one
	// of them is set.
	Published      *Published
	PublicationErr error
	Failures       int // looks in a row that failed
}

// Monitor looks at slot, publication and tables at intervals, on an ordinary
// connection of its own. Between two looks it waits on that connection, so that
// it learns of a shutdown of the server at once: a walsender gets no such word
// and would hold a fast shutdown up.
type Monitor struct {
	opt      MonitorOptions
	log      *zap.Logger
	now      func() time.Time
	requests chan rootRequest

	mu       sync.Mutex
	latest   Observation
	expected *Published
	broken   func(error)
	shutdown func()
	told     bool
	wake     context.CancelFunc // ends the wait of the session; nil while it works
}

type rootRequest struct {
	ctx    context.Context
	oid    uint32
	answer chan<- rootAnswer // has room for one
}

type rootAnswer struct {
	root      Table
	published bool
	ok        bool
	err       error
	broke     bool // the connection did; ask again
}

// NewMonitor makes a Monitor; Run makes it work.
func NewMonitor(opt MonitorOptions) *Monitor {
	if opt.Application == "" {
		opt.Application = "walpost/" + opt.Slot + "/monitor"
	}
	if opt.Interval <= 0 {
		opt.Interval = 10 * time.Second
	}
	if opt.StatementTimeout <= 0 {
		opt.StatementTimeout = 3 * time.Second
	}
	if opt.Log == nil {
		opt.Log = zap.NewNop()
	}
	if opt.Now == nil {
		opt.Now = time.Now
	}
	opt.Config = opt.Config.Copy()
	params := maps.Clone(opt.Config.RuntimeParams)
	if params == nil {
		params = map[string]string{}
	}
	params["statement_timeout"] = strconv.FormatInt(opt.StatementTimeout.Milliseconds(), 10)
	opt.Config.RuntimeParams = params
	return &Monitor{opt: opt, log: opt.Log, now: opt.Now, requests: make(chan rootRequest, 16)}
}

// Latest is the newest observation; At is zero before the first.
func (m *Monitor) Latest() Observation {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.latest
}

// Expect sets what the publication was when streaming began. From then on every
// difference that loses rows is told once.
func (m *Monitor) Expect(p *Published) {
	m.mu.Lock()
	m.expected, m.told = p, false
	m.mu.Unlock()
}

// OnPublicationBroken sets what is called when publication or tables are no
// longer what Expect was told: once, from Run's goroutine, and only on a
// definite answer. Set it before Run.
func (m *Monitor) OnPublicationBroken(f func(error)) { m.broken = f }

// OnServerShutdown sets what is called when the server ends our session because
// it shuts down, or cannot end our stream because nobody reads it, from Run's
// goroutine. Set it before Run.
func (m *Monitor) OnServerShutdown(f func()) { m.shutdown = f }

// Run looks until ctx ends and then returns its cause. It reconnects for ever.
func (m *Monitor) Run(ctx context.Context) error {
	for failures := 0; ; {
		started := m.now()
		conn, err := pg.Connect(ctx, m.opt.Config, m.opt.Application)
		if err == nil {
			failures, err = 0, m.session(ctx, conn)
			closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
			_ = conn.Close(closing)
			cancel()
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		m.failed(started, err)
		if m.shutdown != nil && isShutdown(err) {
			m.shutdown()
		}
		if !m.pause(ctx, failures) {
			return context.Cause(ctx)
		}
		failures++
	}
}

// isShutdown says whether the server ended the session, or refuses a new one,
// because it stops or has just started. A single session that an administrator
// ended looks the same.
func isShutdown(err error) bool {
	switch pg.SQLState(err) {
	case "57P01", "57P02", "57P03":
		return true
	}
	return false
}

// pause backs off, with jitter, and at most for the interval. It is false when
// ctx ended.
func (m *Monitor) pause(ctx context.Context, failures int) bool {
	d := min(250*time.Millisecond<<min(failures, 5), 5*time.Second, m.opt.Interval)
	timer := time.NewTimer(d/2 + rand.N(d/2+1))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// session looks and waits until the connection is gone, which is its error, or
// ctx ended.
func (m *Monitor) session(ctx context.Context, conn *pgx.Conn) error {
	for {
		if err := m.look(ctx, conn); err != nil && conn.IsClosed() {
			return err
		}
		if err := m.wait(ctx, conn); err != nil {
			return err
		}
	}
}

// look makes one observation. Its error has been recorded unless the connection
// is closed.
func (m *Monitor) look(ctx context.Context, conn *pgx.Conn) error {
	// statement_timeout is kept by the server, which may be out of reach.
	ctx, cancel := context.WithTimeout(ctx, 3*m.opt.StatementTimeout)
	defer cancel()
	started := m.now()
	info, err := Inspect(ctx, conn, m.opt.Slot)
	if err != nil {
		if !conn.IsClosed() {
			m.failed(started, err)
		}
		return err
	}
	published, pubErr := CheckPublication(ctx, conn, m.opt.Publication, m.opt.Tables)
	if _, definite := errors.AsType[*Error](pubErr); pubErr != nil && !definite {
		if !conn.IsClosed() {
			m.failed(started, pubErr)
		}
		return pubErr
	}
	m.mu.Lock()
	if pubErr == nil && m.expected != nil {
		pubErr = m.expected.Changed(published)
	}
	if pubErr != nil {
		published = nil
	}
	m.latest = Observation{At: m.now(), Took: m.now().Sub(started), Info: info, Published: published, PublicationErr: pubErr}
	// The server cuts a long application_name off.
	ours := info.HolderApplication != "" && strings.HasPrefix(m.opt.Application, info.HolderApplication)
	ending := info.HolderEnding && ours && m.shutdown != nil
	tell := pubErr != nil && m.expected != nil && !m.told && m.broken != nil
	if tell {
		m.told = true
	}
	m.mu.Unlock()
	if tell {
		m.broken(pubErr)
	}
	if ending {
		m.shutdown()
	}
	return nil
}

func (m *Monitor) failed(started time.Time, err error) {
	m.mu.Lock()
	m.latest.At, m.latest.Took = m.now(), m.now().Sub(started)
	m.latest.Err = err
	m.latest.Failures++
	first := m.latest.Failures == 1
	m.mu.Unlock()
	if first {
		m.log.Warn("looking at postgres failed", zap.Error(err))
	}
}

// wait lets the interval pass and answers requests meanwhile. Its error is why
// the connection or ctx ended.
func (m *Monitor) wait(ctx context.Context, conn *pgx.Conn) error {
	interval, cancel := context.WithTimeout(ctx, m.opt.Interval)
	defer cancel()
	for {
		err := m.waitForServer(interval, conn)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if conn.IsClosed() {
			return describe("watch the server", err)
		}
		if err := m.serve(ctx, conn); err != nil {
			return err
		}
		if interval.Err() != nil {
			return nil
		}
	}
}

// waitForServer reads from the connection, on which the server only speaks to
// end it, until ctx or a request ends the wait. Both leave the connection as it
// was.
func (m *Monitor) waitForServer(ctx context.Context, conn *pgx.Conn) error {
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	m.mu.Lock()
	m.wake = cancel
	m.mu.Unlock()
	defer func() {
		m.mu.Lock()
		m.wake = nil
		m.mu.Unlock()
	}()
	if len(m.requests) > 0 {
		return nil // it came before wake was there
	}
	_, err := conn.WaitForNotification(waiting)
	return err
}

// serve answers what has been asked. An error is that of the connection.
func (m *Monitor) serve(ctx context.Context, conn *pgx.Conn) error {
	for {
		select {
		case r := <-m.requests:
			if r.ctx.Err() != nil {
				continue
			}
			var a rootAnswer
			a.root, a.published, a.ok, a.err = m.root(ctx, conn, r.oid)
			a.broke = a.err != nil && conn.IsClosed()
			r.answer <- a
			if a.broke {
				return a.err
			}
		default:
			return nil
		}
	}
}

func (m *Monitor) root(ctx context.Context, conn *pgx.Conn, oid uint32) (root Table, published, ok bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, m.opt.StatementTimeout+time.Second)
	defer cancel()
	return Root(ctx, conn, m.opt.Publication, oid)
}

// Root names the topmost partitioned table of a relation, like the function of
// that name, on the monitor's connection. It waits while there is none.
func (m *Monitor) Root(ctx context.Context, relOID uint32) (root Table, published, ok bool, err error) {
	answer := make(chan rootAnswer, 1)
	for {
		select {
		case m.requests <- rootRequest{ctx: ctx, oid: relOID, answer: answer}:
		case <-ctx.Done():
			return Table{}, false, false, context.Cause(ctx)
		}
		m.mu.Lock()
		if m.wake != nil {
			m.wake()
		}
		m.mu.Unlock()
		select {
		case a := <-answer:
			if a.broke {
				continue
			}
			return a.root, a.published, a.ok, a.err
		case <-ctx.Done():
			return Table{}, false, false, context.Cause(ctx)
		}
	}
}
