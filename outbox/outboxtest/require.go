package outboxtest

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"

	"github.com/google/uuid"
)

// Want says what an event in the outbox has to be; what is zero does not count.
type Want struct {
	ID            uuid.UUID
	AggregateType string
	AggregateID   string
	Version       int64
	Type          string
	SchemaVersion int
	TenantID      string
	// Payload is compared as JSON, so order and spaces do not count; a []byte or
	// json.RawMessage is JSON already. A payload that is not JSON has to be the
	// same bytes.
	Payload any
	// Headers have to be there; others may be, too.
	Headers map[string]string
}

// RequireWritten fails the test unless the outbox has an event for each want, in
// this order; other events may stand between them. Given a transaction it also
// sees what that has written and not committed. It gives the events.
func RequireWritten(t testing.TB, q Querier, wants ...Want) []Written {
	t.Helper()
	return defaultTable.RequireWritten(t, q, wants...)
}

// RequireNothingWritten fails the test if the outbox has an event that fits one of
// the filters, or any event if there is no filter.
func RequireNothingWritten(t testing.TB, q Querier, filters ...Want) {
	t.Helper()
	defaultTable.RequireNothingWritten(t, q, filters...)
}

// RequireWritten is the function of that name.
func (t Table) RequireWritten(tb testing.TB, q Querier, wants ...Want) []Written {
	tb.Helper()
	if len(wants) == 0 {
		tb.Fatalf("outboxtest: RequireWritten wants nothing; there is RequireNothingWritten")
	}
	all := t.all(tb, q)
	var found []Written
	rest := all
	for i := range wants {
		n, why, err := find(rest, &wants[i])
		if err != nil {
			tb.Fatalf("outboxtest: want %d: %v", i+1, err)
		}
		if n < 0 {
			behind := ""
			if i > 0 {
				behind = fmt.Sprintf(" behind event %d of %d", i, len(wants))
			}
			tb.Fatalf("no event %s%s%s\n%s", wants[i].String(), behind, why, describe(all))
		}
		found = append(found, rest[n])
		rest = rest[n+1:]
	}
	return found
}

// RequireNothingWritten is the function of that name.
func (t Table) RequireNothingWritten(tb testing.TB, q Querier, filters ...Want) {
	tb.Helper()
	all := t.all(tb, q)
	if len(filters) == 0 {
		filters = []Want{{}}
	}
	for i := range filters {
		n, _, err := find(all, &filters[i])
		if err != nil {
			tb.Fatalf("outboxtest: filter %d: %v", i+1, err)
		}
		if n >= 0 {
			tb.Fatalf("an event was written that should not be: %s\n%s", all[n].String(), describe(all))
		}
	}
}

func (t Table) all(tb testing.TB, q Querier) []Written {
	tb.Helper()
	rows, err := t.rows(tb.Context(), q)
	if err != nil {
		tb.Fatalf("outboxtest: %v", err)
	}
	list := make([]Written, len(rows))
	for i, r := range rows {
		if list[i], err = written(r); err != nil {
			tb.Fatalf("outboxtest: event %s: %v", r[atID], err)
		}
	}
	return list
}

// find gives the place of the first event that fits; if there is none, but one
// that fits but for payload or headers, it says what differs.
func find(list []Written, want *Want) (at int, why string, err error) {
	for i := range list {
		w := &list[i]
		if !want.names(w) {
			continue
		}
		differs, err := want.content(w)
		if err != nil {
			return -1, "", err
		}
		if differs == "" {
			return i, "", nil
		}
		why = "; of the one that is there " + differs
	}
	return -1, why, nil
}

func (want *Want) names(w *Written) bool {
	fits := func(want, got string) bool { return want == "" || want == got }
	return (want.ID == uuid.Nil || want.ID == w.ID) &&
		fits(want.AggregateType, w.AggregateType) && fits(want.AggregateID, w.AggregateID) &&
		fits(want.Type, w.Type) && fits(want.TenantID, w.TenantID) &&
		(want.Version == 0 || want.Version == w.Version) && (want.SchemaVersion == 0 || want.SchemaVersion == w.SchemaVersion)
}

func (want *Want) content(w *Written) (differs string, err error) {
	for name, value := range want.Headers {
		if got, there := w.Headers[name]; !there || got != value {
			return fmt.Sprintf("the header %s is %q, not %q", name, got, value), nil
		}
	}
	if want.Payload == nil {
		return "", nil
	}
	expected, err := marshal(want.Payload)
	if err != nil {
		return "", err
	}
	var a, b any
	if json.Unmarshal(expected, &a) != nil || json.Unmarshal(w.Payload, &b) != nil {
		if string(expected) == string(w.Payload) {
			return "", nil
		}
	} else if reflect.DeepEqual(a, b) {
		return "", nil
	}
	return fmt.Sprintf("the payload is %s, not %s", clip(w.Payload), clip(expected)), nil
}

func marshal(payload any) ([]byte, error) {
	switch p := payload.(type) {
	case []byte:
		return p, nil
	case json.RawMessage:
		return p, nil
	}
	b, err := json.Marshal(payload)
	if err != nil {
		return nil, fmt.Errorf("the payload cannot be marshalled: %w", err)
	}
	return b, nil
}

// String names the fields that count.
func (want *Want) String() string {
	text := ""
	add := func(name, value string) {
		if value != "" {
			text += " " + name + " " + value
		}
	}
	if want.ID != uuid.Nil {
		add("id", want.ID.String())
	}
	add("aggregate type", want.AggregateType)
	add("aggregate id", want.AggregateID)
	if want.Version != 0 {
		add("version", fmt.Sprint(want.Version))
	}
	add("type", want.Type)
	if want.SchemaVersion != 0 {
		add("schema version", fmt.Sprint(want.SchemaVersion))
	}
	add("tenant", want.TenantID)
	if text == "" {
		return "at all"
	}
	return "with" + text
}
