package main

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/jackc/pglogrepl"

	"github.com/walpost/walpost/internal/testkit/pgframe"
)

// recorder is a TCP proxy that reads along in replication sessions. It keeps
// what all relays together have confirmed, and complains of what no relay may
// say. Plain connections pass through unread.
type recorder struct {
	target   string
	complain func(format string, args ...any)
	log      func(format string, args ...any)

	listeners sync.WaitGroup

	mu        sync.Mutex
	given     map[uint64]struct{} // positions that the server has given out
	confirmed uint64              // the highest flush position of any session
	moved     chan struct{}       // closed and replaced when that grows
	streams   map[string]int      // sessions that stream, by instance
	updates   int
	sessions  int
	closers   []io.Closer
}

func newRecorder(target string, complain, log func(string, ...any)) *recorder {
	return &recorder{
		target: target, complain: complain, log: log,
		given: map[uint64]struct{}{}, moved: make(chan struct{}), streams: map[string]int{},
	}
}

// listen opens an address for one instance.
func (r *recorder) listen(instance string) (addr string, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	r.mu.Lock()
	r.closers = append(r.closers, l)
	r.mu.Unlock()
	r.listeners.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			r.listeners.Go(func() { r.serve(instance, conn.(*net.TCPConn)) })
		}
	})
	return l.Addr().String(), nil
}

func (r *recorder) close() {
	r.mu.Lock()
	closers := r.closers
	r.closers = nil
	r.mu.Unlock()
	for _, c := range closers {
		_ = c.Close()
	}
	r.listeners.Wait()
}

// streaming says whether an instance has a session that streams.
func (r *recorder) streaming(instance string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.streams[instance] > 0
}

// position is the highest confirmed one, and a channel that is closed when it
// grows.
func (r *recorder) position() (uint64, <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.confirmed, r.moved
}

func (r *recorder) serve(instance string, client *net.TCPConn) {
	conn, err := net.DialTimeout("tcp", r.target, 5*time.Second)
	if err != nil {
		_ = client.SetLinger(0)
		_ = client.Close()
		return
	}
	server := conn.(*net.TCPConn)
	r.mu.Lock()
	r.closers = append(r.closers, client, server)
	r.mu.Unlock()
	s := &session{recorder: r, instance: instance}
	var flows sync.WaitGroup
	flows.Go(func() { relayBytes(client, server, s.fromClient()) })
	flows.Go(func() { relayBytes(server, client, s.fromServer()) })
	flows.Wait()
	_ = client.Close()
	_ = server.Close()
	s.end()
}

// relayBytes copies until either side ends, and passes the way it ended on.
func relayBytes(from, to *net.TCPConn, see func([]byte)) {
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			see(buf[:n])
			if _, werr := to.Write(buf[:n]); werr != nil {
				_ = from.SetLinger(0)
				_ = from.Close()
				return
			}
		}
		if err == io.EOF {
			_ = to.CloseWrite()
			return
		}
		if err != nil {
			_ = to.SetLinger(0)
			_ = to.Close()
			return
		}
	}
}

// session is one connection. The flows of both directions use it.
type session struct {
	recorder *recorder
	instance string

	// Guarded by recorder.mu:
	replication bool
	streaming   bool
	start       uint64
	flush       uint64 // the newest that was not zero
	highest     uint64 // the highest position that the server has given in here, also as the end of its WAL
}

func (s *session) end() {
	s.recorder.mu.Lock()
	defer s.recorder.mu.Unlock()
	if s.streaming {
		s.recorder.streams[s.instance]--
	}
}

// query is what the client asks in a simple query.
func (s *session) query(text string) {
	const start = "START_REPLICATION SLOT "
	if len(text) < len(start) || text[:len(start)] != start {
		return
	}
	var slot, kind, lsn string
	if _, err := fmt.Sscanf(text[len(start):], "%s %s %s", &slot, &kind, &lsn); err != nil {
		s.recorder.complain("the recorder does not understand %q: %v", text, err)
		return
	}
	at, err := pglogrepl.ParseLSN(lsn)
	if err != nil {
		s.recorder.complain("the recorder does not understand %q: %v", text, err)
		return
	}
	r := s.recorder
	r.mu.Lock()
	defer r.mu.Unlock()
	s.start = uint64(at)
	s.highest = max(s.highest, s.start)
	r.given[s.start] = struct{}{}
	r.sessions++
	r.log("%s starts at %s", s.instance, at)
}

func (s *session) copyBoth() {
	s.recorder.mu.Lock()
	defer s.recorder.mu.Unlock()
	if !s.streaming {
		s.streaming = true
		s.recorder.streams[s.instance]++
	}
}

// give notes a position that the server has named.
func (s *session) give(lsn uint64) {
	s.recorder.mu.Lock()
	defer s.recorder.mu.Unlock()
	s.recorder.given[lsn] = struct{}{}
	s.highest = max(s.highest, lsn)
}

// status is I5, and rule 6 of positions: none that the server has not given.
func (s *session) status(write, flush, apply uint64) {
	r := s.recorder
	r.mu.Lock()
	defer r.mu.Unlock()
	r.updates++
	lsn := func(v uint64) pglogrepl.LSN { return pglogrepl.LSN(v) }
	said := fmt.Sprintf("%s said write %s flush %s apply %s after flush %s", s.instance, lsn(write), lsn(flush), lsn(apply), lsn(s.flush))
	if write == 0 {
		r.complain("I5: write position zero: %s", said)
	}
	if flush == 0 {
		if apply != 0 {
			r.complain("I5: flush zero with an apply position: %s", said)
		}
		return
	}
	switch {
	case flush < s.flush:
		r.complain("I5: the flush position went back: %s", said)
	case flush > write:
		r.complain("I5: flushed more than written: %s", said)
	case apply > flush || apply == 0:
		r.complain("I5: apply is not set: %s", said)
	}
	if _, ok := r.given[flush]; !ok {
		r.complain("a position that the server never gave: %s", said)
	}
	if flush > max(s.highest, s.start) {
		r.complain("a position above all that this session was given (%s): %s", lsn(s.highest), said)
	}
	s.flush = max(s.flush, flush)
	if flush > r.confirmed {
		r.confirmed = flush
		close(r.moved)
		r.moved = make(chan struct{})
	}
}

// fromClient returns what reads the client's bytes: a start-up packet, then
// messages.
func (s *session) fromClient() func([]byte) {
	var f pgframe.Framer
	started := false
	return func(data []byte) {
		f.Add(data)
		for !started {
			packet, ok := f.Startup()
			if !ok {
				return
			}
			if code := binary.BigEndian.Uint32(packet); code == 196608 { // protocol 3.0
				started = true
				s.recorder.mu.Lock()
				s.replication = pgframe.AsksReplication(packet[4:])
				s.recorder.mu.Unlock()
			}
		}
		if !s.isReplication() {
			f.Drop()
			return
		}
		for {
			kind, body, ok := f.Message()
			if !ok {
				return
			}
			switch {
			case kind == 'Q' && len(body) > 0:
				s.query(string(body[:len(body)-1]))
			case kind == 'd' && len(body) == 34 && body[0] == 'r':
				s.status(binary.BigEndian.Uint64(body[1:]), binary.BigEndian.Uint64(body[9:]), binary.BigEndian.Uint64(body[17:]))
			}
		}
	}
}

// fromServer returns what reads the server's bytes.
func (s *session) fromServer() func([]byte) {
	var f pgframe.Framer
	return func(data []byte) {
		if !s.isReplication() {
			return // the answer to the start-up packet comes after it
		}
		f.Add(data)
		for {
			kind, body, ok := f.Message()
			if !ok {
				return
			}
			switch {
			case kind == 'D':
				s.identified(body)
			case kind == 'W':
				s.copyBoth()
			case kind == 'd' && len(body) >= 18 && body[0] == 'k':
				s.give(binary.BigEndian.Uint64(body[1:]))
			case kind == 'd' && len(body) >= 25+26 && body[0] == 'w' && body[25] == 'C':
				s.give(binary.BigEndian.Uint64(body[25+10:])) // the end LSN
			}
		}
	}
}

// identified takes the end of the WAL from the answer to IDENTIFY_SYSTEM (system
// identifier, timeline, position, database): whoever knows positions from before
// has to compare them with it, and may then name those below it.
func (s *session) identified(row []byte) {
	var columns []string
	if len(row) < 2 {
		return
	}
	n := int(binary.BigEndian.Uint16(row))
	for row = row[2:]; n > 0 && len(row) >= 4; n-- {
		size := int32(binary.BigEndian.Uint32(row))
		row = row[4:]
		if size < 0 || int(size) > len(row) {
			size = 0
		}
		columns = append(columns, string(row[:size]))
		row = row[size:]
	}
	if len(columns) != 4 {
		return
	}
	at, err := pglogrepl.ParseLSN(columns[2])
	if err != nil {
		return
	}
	s.recorder.mu.Lock()
	s.highest = max(s.highest, uint64(at))
	s.recorder.mu.Unlock()
}

func (s *session) isReplication() bool {
	s.recorder.mu.Lock()
	defer s.recorder.mu.Unlock()
	return s.replication
}
