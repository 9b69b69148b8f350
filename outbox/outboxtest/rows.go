package outboxtest

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/walpost/walpost/outbox"
)

// Querier is a pgx.Tx, a *pgx.Conn, a *pgxpool.Pool or a *Database.
type Querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// Table is an outbox of another name, as outbox.SchemaOptions.Table has it, for
// the functions of the same names.
type Table string

const defaultTable Table = "outbox_events"

// allRows is one value, so that every Querier can give it. Text keeps payload and
// headers as the server prints them, which is what is published.
const allRows = `select coalesce(json_agg(json_build_array(event_id::text, aggregate_type, aggregate_id, coalesce(aggregate_version, 0)::text,
  event_type, schema_version::text, payload::text, pg_typeof(payload)::text, occurred_at::text, coalesce(tenant_id, ''),
  coalesce(traceparent, ''), coalesce(tracestate, ''), coalesce(headers::text, '{}')) order by seq), '[]')::text from %s`

// rows reads the outbox.
func (t Table) rows(ctx context.Context, q Querier) ([][]string, error) {
	name, err := t.identifier()
	if err != nil {
		return nil, err
	}
	var text string
	if err := q.QueryRow(ctx, fmt.Sprintf(allRows, name)).Scan(&text); err != nil {
		return nil, fmt.Errorf("read the outbox: %w", err)
	}
	var rows [][]string
	if err := json.Unmarshal([]byte(text), &rows); err != nil {
		return nil, fmt.Errorf("read the outbox: %w", err)
	}
	return rows, nil
}

func (t Table) identifier() (string, error) {
	name := string(t)
	if !strings.Contains(name, `"`) {
		return pgx.Identifier(strings.Split(name, ".")).Sanitize(), nil
	}
	if strings.Count(name, `"`)%2 != 0 || strings.ContainsAny(name, ";") {
		return "", fmt.Errorf("table %q: quotes do not match", name)
	}
	return name, nil // quoted by the caller
}

// Messages gives what is in the outbox as a consumer receives it, in the order in
// which it was written, from topics named as walpost does. The partition is 0, and
// the offset is the place in the list.
func Messages(t testing.TB, q Querier) []outbox.Message {
	t.Helper()
	return defaultTable.Messages(t, q)
}

// Messages is the function of that name.
func (t Table) Messages(tb testing.TB, q Querier) []outbox.Message {
	tb.Helper()
	list, err := t.messages(tb.Context(), q)
	if err != nil {
		tb.Fatalf("outboxtest: %v", err)
	}
	return list
}

func (t Table) messages(ctx context.Context, q Querier) ([]outbox.Message, error) {
	rows, err := t.rows(ctx, q)
	if err != nil {
		return nil, err
	}
	list := make([]outbox.Message, len(rows))
	for i, r := range rows {
		if list[i], err = message(r, int64(i)); err != nil {
			return nil, fmt.Errorf("event %s: %w", r[0], err)
		}
	}
	return list, nil
}

// The places of a row's values.
const (
	atID = iota
	atAggregateType
	atAggregateID
	atVersion
	atType
	atSchema
	atPayload
	atPayloadType
	atOccurred
	atTenant
	atParent
	atState
	atHeaders
)

func message(r []string, offset int64) (outbox.Message, error) {
	value := []byte(r[atPayload])
	if r[atPayloadType] == "bytea" {
		var err error
		if value, err = hex.DecodeString(strings.TrimPrefix(r[atPayload], `\x`)); err != nil {
			return outbox.Message{}, err
		}
	}
	headers := []outbox.Header{{Key: "id", Value: []byte(r[atID])}}
	add := func(name, text string) {
		if text != "" {
			headers = append(headers, outbox.Header{Key: name, Value: []byte(text)})
		}
	}
	add("aggregate_type", r[atAggregateType])
	add("event_type", r[atType])
	add("schema_version", r[atSchema])
	if r[atVersion] != "0" {
		add("aggregate_version", r[atVersion])
	}
	add("occurred_at", r[atOccurred])
	add("traceparent", r[atParent])
	add("tracestate", r[atState])
	add("tenant_id", r[atTenant])
	members, err := objectInOrder(r[atHeaders])
	if err != nil {
		return outbox.Message{}, err
	}
	headers = append(headers, members...)
	record := outbox.Record{
		Topic: "outbox.event." + r[atAggregateType], Offset: offset,
		Key: []byte(r[atAggregateID]), Value: value,
	}
	m, err := outbox.Parse(record, func(yield func(string, []byte) bool) {
		for _, h := range headers {
			if !yield(h.Key, h.Value) {
				return
			}
		}
	})
	m.Time = m.OccurredAt
	return m, err
}

// objectInOrder gives the members of a JSON object as the server has ordered them.
func objectInOrder(text string) ([]outbox.Header, error) {
	d := json.NewDecoder(strings.NewReader(text))
	if _, err := d.Token(); err != nil {
		return nil, fmt.Errorf("headers: %w", err)
	}
	var list []outbox.Header
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, fmt.Errorf("headers: %w", err)
		}
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return nil, fmt.Errorf("headers: %w", err)
		}
		h := outbox.Header{Key: fmt.Sprint(name), Value: raw}
		var s string
		if string(raw) == "null" {
			h.Value = nil
		} else if json.Unmarshal(raw, &s) == nil {
			h.Value = []byte(s)
		}
		list = append(list, h)
	}
	return list, nil
}

// Written is an event as it stands in the outbox.
type Written struct {
	ID            uuid.UUID
	AggregateType string
	AggregateID   string
	Version       int64
	Type          string
	SchemaVersion int
	Payload       []byte
	OccurredAt    time.Time
	TenantID      string
	Headers       map[string]string
}

func written(r []string) (Written, error) {
	m, err := message(r, 0)
	if err != nil {
		return Written{}, err
	}
	w := Written{
		ID: m.ID, AggregateType: m.AggregateType, AggregateID: m.AggregateID, Version: m.Version, Type: m.Type, SchemaVersion: m.SchemaVersion,
		Payload: m.Value, OccurredAt: m.OccurredAt, TenantID: m.TenantID, Headers: map[string]string{},
	}
	members, err := objectInOrder(r[atHeaders])
	for _, h := range members {
		w.Headers[h.Key] = string(h.Value)
	}
	return w, err
}

// String is the event without its payload.
func (w *Written) String() string {
	text := w.AggregateType + "/" + w.AggregateID
	if w.Version > 0 {
		text += " version " + strconv.FormatInt(w.Version, 10)
	}
	if w.TenantID != "" {
		text += " of tenant " + w.TenantID
	}
	return text + ": " + w.Type
}

func describe(list []Written) string {
	if len(list) == 0 {
		return "the outbox is empty"
	}
	lines := []string{"in the outbox:"}
	for i := range list[:min(len(list), 50)] {
		lines = append(lines, "  "+list[i].String()+" "+clip(list[i].Payload))
	}
	if len(list) > 50 {
		lines = append(lines, fmt.Sprintf("  and %d more", len(list)-50))
	}
	return strings.Join(lines, "\n")
}

func clip(b []byte) string {
	if len(b) > 200 {
		return string(slices.Concat(b[:200], []byte("...")))
	}
	return string(b)
}
