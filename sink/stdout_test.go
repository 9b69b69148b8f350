package sink

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"
)

func TestStdoutGolden(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	s := NewStdout(&out, func([]Ack) {})
	at := time.Date(2026, 1, 2, 3, 4, 5, 678_900_000, time.FixedZone("", 3600))
	for _, r := range []Record{
		{Topic: "t", Partition: ByKey, Key: []byte("k"), Value: []byte(`{"a":1}`), Time: at, Headers: []Header{{Name: "id", Value: []byte("e")}, {Name: "n"}}},
		{Topic: "t", Partition: 3, Key: []byte{0xff}, Time: at, Headers: []Header{{Name: "b", Value: []byte{0xfe}}}},
	} {
		if err := s.Submit(context.Background(), &r); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := s.Run(ctx); err != nil {
		t.Fatal(err)
	}
	want := `{"topic":"t","partition":null,"timestamp":"2026-01-02T02:04:05.678Z","key":"k","headers":[{"name":"id","value":"e"},{"name":"n","value":null}],"value":"{\"a\":1}"}
{"topic":"t","partition":3,"timestamp":"2026-01-02T02:04:05.678Z","key":null,"key_base64":"/w==","headers":[{"name":"b","value":null,"value_base64":"/g=="}],"value":null}
`
	if got := out.String(); got != want {
		t.Errorf("lines\n got %s\nwant %s", got, want)
	}
}

type brokenWriter struct{ err error }

func (w brokenWriter) Write([]byte) (int, error) { return 0, w.err }

func TestStdoutWriterFails(t *testing.T) {
	t.Parallel()
	full := errors.New("disk full")
	s := NewStdout(brokenWriter{full}, func([]Ack) { t.Error("an ack for a record that was not written") })
	if err := s.Submit(context.Background(), &Record{Topic: "t"}); err != nil {
		t.Fatal(err)
	}
	if err := s.Run(context.Background()); !errors.Is(err, full) {
		t.Errorf("Run() = %v, want %v", err, full)
	}
}
