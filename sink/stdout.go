package sink

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"time"
	"unicode/utf8"
)

// Stdout writes records as JSON lines. It is for trying things: a line counts as
// delivered when it is written, and nothing protects it after that.
//
// A line has topic, partition (null when the key decides), timestamp, key,
// headers and value. Text is a JSON string; bytes that are not UTF-8 appear
// under the same name with the suffix _base64; null is null.
type Stdout struct {
	acked func([]Ack)
	kick  chan struct{} // a token when there is something to flush
	room  chan struct{} // a token when Submit may try again

	mu      sync.Mutex
	w       *bufio.Writer
	full    bool // Submit waits for room
	pending []Ack
	records uint64
	lastAck time.Time
	err     error
}

// NewStdout writes to w and tells acked of every record written.
func NewStdout(w io.Writer, acked func([]Ack)) *Stdout {
	return &Stdout{acked: acked, kick: make(chan struct{}, 1), room: make(chan struct{}, 1), w: bufio.NewWriterSize(w, 64<<10)}
}

// maxUnflushed bounds what Submit leaves to Run.
const maxUnflushed = 1000

// Run implements Sink: it flushes and acks whatever has been written since the
// last time, also when it ends, so that no line is cut in the middle. A failing
// writer is fatal.
func (s *Stdout) Run(ctx context.Context) error {
	for {
		over := ctx.Err() != nil
		if err := s.flush(); err != nil {
			return fmt.Errorf("write record: %w", err)
		}
		if over {
			return nil
		}
		select {
		case <-ctx.Done():
		case <-s.kick:
		}
	}
}

func (s *Stdout) flush() error {
	s.mu.Lock()
	if s.err == nil {
		s.err = s.w.Flush()
	}
	err, acks := s.err, s.pending
	s.pending = nil
	if err == nil && len(acks) > 0 {
		s.records += uint64(len(acks))
		s.lastAck = time.Now()
	}
	if s.full && err == nil {
		s.full = false
		signal(s.room)
	}
	s.mu.Unlock()
	if err == nil && len(acks) > 0 {
		s.acked(acks)
	}
	return err
}

// Submit implements Sink.
func (s *Stdout) Submit(ctx context.Context, r *Record) error {
	line, err := json.Marshal(printable(r))
	if err != nil {
		return fmt.Errorf("print record: %w", err)
	}
	s.mu.Lock()
	for len(s.pending) >= maxUnflushed {
		s.full = true
		s.mu.Unlock()
		select {
		case <-s.room:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		s.mu.Lock()
	}
	if s.err == nil {
		_, s.err = s.w.Write(append(line, '\n'))
	}
	s.pending = append(s.pending, Ack{Tx: r.Tag.Tx, N: 1, Topic: r.Topic})
	s.mu.Unlock()
	signal(s.kick)
	return nil
}

// signal leaves a token in a channel that holds one.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Status implements Sink.
func (s *Stdout) Status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Status{
		InFlightRecords: len(s.pending), LastAck: s.lastAck, LastContact: time.Now(), Beat: time.Now(), Records: s.records,
	}
}

func printable(r *Record) any {
	type header struct {
		Name   string  `json:"name"`
		Value  *string `json:"value"`
		Base64 []byte  `json:"value_base64,omitempty"`
	}
	line := struct {
		Topic       string    `json:"topic"`
		Partition   *int32    `json:"partition"`
		Timestamp   time.Time `json:"timestamp"`
		Key         *string   `json:"key"`
		KeyBase64   []byte    `json:"key_base64,omitempty"`
		Headers     []header  `json:"headers"`
		Value       *string   `json:"value"`
		ValueBase64 []byte    `json:"value_base64,omitempty"`
	}{Topic: r.Topic, Timestamp: r.Time.UTC().Truncate(time.Millisecond), Headers: []header{}}
	if r.Partition != ByKey {
		line.Partition = &r.Partition
	}
	line.Key, line.KeyBase64 = text(r.Key)
	line.Value, line.ValueBase64 = text(r.Value)
	for _, h := range r.Headers {
		v, raw := text(h.Value)
		line.Headers = append(line.Headers, header{h.Name, v, raw})
	}
	return line
}

func text(b []byte) (*string, []byte) {
	if b == nil {
		return nil, nil
	}
	if !utf8.Valid(b) {
		return nil, b
	}
	s := string(b)
	return &s, nil
}
