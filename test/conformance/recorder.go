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

// recorder is a TCP proxy before PostgreSQL that reads along in replication
// sessions; plain connections pass unread. It knows neither TLS nor GSSAPI, so
// the server must have neither.
type recorder struct {
	target   string
	listener net.Listener
	tasks    sync.WaitGroup

	mu    sync.Mutex
	conns []io.Closer
	ended bool
	seen  seen
}

// seen is what the recorder knows of all sessions together.
type seen struct {
	flush   uint64            // highest confirmed position
	walEnd  uint64            // highest position of a keepalive
	updates int               // status updates
	commits map[uint64]string // what the server gave: "end" or "commit" LSN, or "keepalive"
	odd     map[uint64]string // flush positions that are no end LSN and no keepalive's
}

func newRecorder(target string) (*recorder, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start the recorder: %w", err)
	}
	r := &recorder{target: target, listener: listener, seen: seen{commits: map[uint64]string{}, odd: map[uint64]string{}}}
	r.tasks.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return // closed
			}
			r.tasks.Go(func() { r.serve(conn.(*net.TCPConn)) })
		}
	})
	return r, nil
}

func (r *recorder) addr() *net.TCPAddr { return r.listener.Addr().(*net.TCPAddr) }

func (r *recorder) close() {
	_ = r.listener.Close()
	r.mu.Lock()
	r.ended = true
	for _, c := range r.conns {
		_ = c.Close()
	}
	r.mu.Unlock()
	r.tasks.Wait()
}

// confirmed is the highest position that any session has confirmed.
func (r *recorder) confirmed() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.seen.flush
}

// progress is the highest position of a keepalive, and the number of status
// updates.
func (r *recorder) progress() (walEnd uint64, updates int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.seen.walEnd, r.seen.updates
}

// oddities describes confirmed positions that are not the end of a transaction
// and not a keepalive's, by kind.
func (r *recorder) oddities() map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	kinds := map[string]int{}
	for _, kind := range r.seen.odd {
		kinds[kind]++
	}
	return kinds
}

// give notes a position that the server names, as it would name the start.
func (r *recorder) give(lsn uint64, kind string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if kind != "commit" || r.seen.commits[lsn] == "" {
		r.seen.commits[lsn] = kind
	}
	if kind == "keepalive" {
		r.seen.walEnd = max(r.seen.walEnd, lsn)
	}
}

func (r *recorder) status(flush uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen.updates++
	if flush == 0 {
		return // confirms nothing
	}
	switch r.seen.commits[flush] {
	case "end", "keepalive":
	case "commit":
		r.seen.odd[flush] = "the start of a commit record"
	default:
		if flush > r.seen.flush {
			r.seen.odd[flush] = "a position that the server did not name"
		}
	}
	r.seen.flush = max(r.seen.flush, flush)
}

func (r *recorder) serve(client *net.TCPConn) {
	conn, err := net.DialTimeout("tcp", r.target, 5*time.Second)
	if err != nil {
		_ = client.SetLinger(0)
		_ = client.Close()
		return
	}
	server := conn.(*net.TCPConn)
	r.mu.Lock()
	r.conns = append(r.conns, client, server)
	ended := r.ended
	r.mu.Unlock()
	if ended {
		_ = client.Close()
		_ = server.Close()
		return
	}
	s := &session{recorder: r}
	var flows sync.WaitGroup
	flows.Go(func() { pass(client, server, s.fromClient) })
	flows.Go(func() { pass(server, client, s.fromServer) })
	flows.Wait()
	_ = client.Close()
	_ = server.Close()
}

// pass copies until either side ends, and passes the way it ended on.
func pass(from, to *net.TCPConn, see func([]byte)) {
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
		switch {
		case err == io.EOF:
			_ = to.CloseWrite()
			return
		case err != nil:
			_ = to.SetLinger(0)
			_ = to.Close()
			return
		}
	}
}

// session is one connection.
type session struct {
	recorder *recorder

	client, server pgframe.Framer

	mu          sync.Mutex // the flows of both directions
	started     bool
	replication bool
}

func (s *session) reads() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.replication
}

const protocol3 = 196608

func (s *session) fromClient(data []byte) {
	s.client.Add(data)
	for !s.started {
		packet, ok := s.client.Startup()
		if !ok {
			return
		}
		// Requests for encryption come first, and are refused with one byte.
		if binary.BigEndian.Uint32(packet) == protocol3 {
			s.mu.Lock()
			s.started, s.replication = true, pgframe.AsksReplication(packet[4:])
			s.mu.Unlock()
		}
	}
	if !s.reads() {
		s.client.Drop()
		return
	}
	for {
		kind, body, ok := s.client.Message()
		if !ok {
			return
		}
		if kind == 'd' && len(body) == 34 && body[0] == 'r' {
			s.recorder.status(binary.BigEndian.Uint64(body[9:]))
		}
	}
}

func (s *session) fromServer(data []byte) {
	if !s.reads() {
		return // the answers before it
	}
	s.server.Add(data)
	for {
		kind, body, ok := s.server.Message()
		switch {
		case !ok:
			return
		case kind != 'd':
		case len(body) >= 18 && body[0] == 'k':
			s.recorder.give(binary.BigEndian.Uint64(body[1:]), "keepalive")
		case len(body) >= 25+26 && body[0] == 'w' && body[25] == 'C':
			s.recorder.give(binary.BigEndian.Uint64(body[25+2:]), "commit")
			s.recorder.give(binary.BigEndian.Uint64(body[25+10:]), "end")
		}
	}
}

func lsn(v uint64) string { return pglogrepl.LSN(v).String() }
