package outbox

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// invariantO3: id and bytes are the same in the table, in the record, in the
// parked row, and for the handler that it is resumed with.
func invariantO3(b *bench, v variant) error {
	payloads := map[string][]string{
		"jsonb": {`{"b": 1,   "a": "ü\u00e9😀"}`, `[1.50, 1e2, null]`, `"\\\""`},
		"json":  {`{"b": 1,   "a": 1, "a": 2}`, " [1.50,\t1e2]\n", `{"nul":"\u0000","lone":"\ud800"}`},
		"text":  {"no JSON; é", "", "{ }"},
		"bytea": {"\x00\xff\x01", "", "{}  "},
	}
	for kind, list := range payloads {
		table := "outbox_" + kind
		if _, err := Migrate(b.ctx, b.pool, MigrateOptions{SchemaOptions: SchemaOptions{Parts: Guard | Table, Table: table, Payload: kind}}); err != nil {
			return err
		}
		w := b.writer(WriterOptions{Table: table, Payload: kind})
		for i, payload := range list {
			for way, write := range writers(w) {
				e := event(fmt.Sprint(kind, way, i), 0)
				e.Payload = []byte(payload)
				e.Headers = map[string]string{"x": "ü"}
				if err := b.in(func(tx pgx.Tx) error { return write(b.ctx, tx, e) }); err != nil {
					return fmt.Errorf("%s %s %q: %w", kind, way, payload, err)
				}
				if err := followed(b, v, table, kind, e, []byte(payload)); err != nil {
					return fmt.Errorf("%s %s %q: %w", kind, way, payload, err)
				}
			}
		}
	}
	return nil
}

func followed(b *bench, v variant, table, kind string, e *Event, payload []byte) error {
	column := "convert_to(payload::text, 'UTF8')"
	if kind == "bytea" {
		column = "payload"
	}
	var id, occurred string
	var stored []byte
	if err := b.in(func(tx pgx.Tx) error {
		return tx.QueryRow(b.ctx, `select event_id::text, occurred_at::text, `+column+` from `+table+` where aggregate_id = $1`, e.AggregateID).Scan(&id, &occurred, &stored)
	}); err != nil {
		return err
	}
	if id != e.ID.String() || kind != "jsonb" && !bytes.Equal(stored, payload) {
		return fmt.Errorf("the table has %s %q", id, stored)
	}
	// The relay sends what the table has, byte for byte.
	rec := Record{Topic: "outbox.event.order", Partition: 3, Offset: 42, Key: []byte(e.AggregateID), Value: stored, Time: time.UnixMilli(1770000000123).UTC()}
	m, err := Parse(rec, headers("id", id, "aggregate_type", "order", "event_type", "moved", "occurred_at", occurred, "x", "ü", "x", "twice"))
	if err != nil {
		return err
	}
	if !m.OccurredAt.Equal(e.OccurredAt) || m.ID != e.ID {
		return fmt.Errorf("parsed %s of %s, want %s of %s", m.ID, m.OccurredAt, e.ID, e.OccurredAt)
	}
	m.Headers = append(m.Headers, Header{"null", nil}, Header{"bytes", []byte{0, 255}})
	c := v.consumer(b, ConsumerOptions{})
	if _, err := c.Process(b.ctx, m, func(context.Context, pgx.Tx, Message) error { return Permanent(errors.New("no\x00\xff")) }); err != nil {
		return err
	}
	parked, err := c.Parked(b.ctx, ParkedFilter{ID: m.ID})
	if err != nil || len(parked) != 1 {
		return fmt.Errorf("parked %d: %v", len(parked), err)
	}
	if diff := cmp.Diff(m, parked[0].Message); diff != "" {
		return fmt.Errorf("parked (-want +got):\n%s", diff)
	}
	var resumed Message
	report, err := c.Resume(b.ctx, func(_ context.Context, _ pgx.Tx, m Message) error { resumed = m; return nil }, ParkedFilter{ID: m.ID})
	if err != nil || report.Applied != 1 {
		return fmt.Errorf("resume: %+v, %v", report, err)
	}
	if diff := cmp.Diff(m, resumed); diff != "" {
		return fmt.Errorf("resumed (-want +got):\n%s", diff)
	}
	return nil
}

func TestO3IdAndBytesStayTheSame(t *testing.T) { hold(t, invariantO3) }

// headers are pairs of name and value; a value "NULL" is a null header.
func headers(pairs ...string) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		for i := 0; i < len(pairs); i += 2 {
			value := []byte(pairs[i+1])
			if pairs[i+1] == "NULL" {
				value = nil
			}
			if !yield(pairs[i], value) {
				return
			}
		}
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	const id = "019c1c38-a47b-7224-bee6-9effcb570e91"
	connect := func(v string) string {
		b, _ := json.Marshal(map[string]any{"schema": map[string]any{"type": "string"}, "payload": v})
		return string(b)
	}
	for name, c := range map[string]struct {
		topic, key string
		headers    []string
		want       string // or the end of the error
	}{
		"walpost": {"outbox.event.order", "o-1", []string{
			"id", id, "aggregate_type", "order", "event_type", "paid", "schema_version", "2", "aggregate_version", "7",
			"occurred_at", "2026-12-02 09:14:43.123456+00", "traceparent", "00-a", "tracestate", "k=v", "tenant_id", "acme", "x", "1",
		}, "order o-1 7 paid 2 2026-12-02T09:14:43.123456Z acme 00-a k=v"},
		"debezium": {"outbox.event.User", "10711fa5", []string{
			"__debezium.context.taskId", "0", "id", id, "eventType", "UserCreated", "id", "second",
		}, "User 10711fa5 0 UserCreated 1 0001-01-01T00:00:00Z   "},
		"debezium server": {"outbox.event.User", connect("10711fa5"), []string{
			"id", connect(id), "eventType", connect("UserCreated"), "aggregateVersion", `{"schema":{"type":"int64"},"payload":3}`,
		}, "User 10711fa5 3 UserCreated 1 0001-01-01T00:00:00Z   "},
		"json without schema": {"users", `"k"`, []string{"id", `"` + id + `"`, "type", `"a"`, "occurred_at", "1770000000123456"},
			"users k 0 a 1 2026-02-02T02:40:00.123456Z   "},
		"a key that is JSON": {"users", `{"a":1}`, []string{"id", id, "tenant", "NULL"}, `users {"a":1} 0  1 0001-01-01T00:00:00Z   `},
		"no id":              {"t", "k", nil, `the header id is ""`},
		"null id":            {"t", "k", []string{"id", "NULL"}, `the header id is ""`},
		"nil id":             {"t", "k", []string{"id", uuid.Nil.String()}, `00000000"`},
		"other id":           {"t", "k", []string{"id", "17"}, `the header id is "17"`},
		"version":            {"t", "k", []string{"id", id, "aggregate_version", "x"}, `aggregate_version is "x"`},
		"negative":           {"t", "k", []string{"id", id, "aggregate_version", "-1"}, `aggregate_version is "-1"`},
		"schema version":     {"t", "k", []string{"id", id, "schema_version", "9999999999"}, `schema_version is "9999999999"`},
	} {
		m, err := Parse(Record{Topic: c.topic, Key: []byte(c.key)}, headers(c.headers...))
		got := strings.Join([]string{
			m.AggregateType, m.AggregateID, fmt.Sprint(m.Version), m.Type, fmt.Sprint(m.SchemaVersion),
			m.OccurredAt.Format(time.RFC3339Nano), m.TenantID, m.Traceparent, m.Tracestate,
		}, " ")
		if err != nil {
			got = err.Error()
			var h interface{ Hint() string }
			if !errors.Is(err, ErrNotAnEvent) || !errors.As(err, &h) || h.Hint() == "" {
				t.Errorf("%s: %#v", name, err)
			}
		} else if m.ID.String() != id || len(m.Headers)*2 != len(c.headers) {
			t.Errorf("%s: id %s, %d headers", name, m.ID, len(m.Headers))
		}
		if err == nil && got != c.want || !strings.HasSuffix(got, c.want) {
			t.Errorf("%s:\n got %s\nwant %s", name, got, c.want)
		}
	}
	if _, err := Parse(Record{}, nil); !errors.Is(err, ErrNotAnEvent) {
		t.Errorf("no headers: %v", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("id", []byte("019c1c38-a47b-7224-bee6-9effcb570e91"), []byte("k"))
	f.Add("id", []byte(`{"schema":{},"payload":"x"}`), []byte(`"`))
	f.Add("aggregate_version", []byte("1"), []byte(`{"payload":null,"schema":1}`))
	f.Fuzz(func(t *testing.T, name string, value, key []byte) {
		m, err := Parse(Record{Key: key}, func(yield func(string, []byte) bool) { yield(name, value) })
		if err == nil && (m.ID == uuid.Nil || m.Version < 0) || err != nil && !errors.Is(err, ErrNotAnEvent) {
			t.Errorf("%+v, %v", m, err)
		}
	})
}

func FuzzPayload(f *testing.F) {
	for _, s := range []string{`"\ud83d\ude00"`, `1e5`, `{"a":[-0.1]}`, `"\u0000"`, `"\\u"`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if refused("jsonb", b) == "" && !json.Valid(b) {
			t.Error("not JSON")
		}
	})
}
