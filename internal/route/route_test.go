package route

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/walpost/walpost/internal/event"
	"github.com/walpost/walpost/sink"
)

var eventTime = time.Date(2026, 12, 2, 5, 14, 0, 0, time.UTC)

func sample(change func(*event.Event)) *event.Event {
	ev := &event.Event{
		Table: "public.outbox_events", Source: 3, ID: []byte("id-1"), AggregateType: []byte("order"), AggregateID: []byte("o-1"),
		Type: []byte("order_created"), Payload: []byte(`{"n": 1}`), Time: eventTime,
		Headers: []event.Header{{Name: "aggregate_type", Value: []byte("order")}, {Name: "tenant", Value: []byte("acme")}, {Name: "tenant", Value: []byte("other")}, {Name: "none"}},
	}
	if change != nil {
		change(ev)
	}
	return ev
}

func router(t testing.TB, o Options) *Router {
	t.Helper()
	r, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRoute(t *testing.T) {
	t.Parallel()
	r := router(t, Options{})
	// What an earlier record left behind must not show; the Tag is the caller's.
	rec := sink.Record{Topic: "old", Partition: 4, Key: []byte("k"), Value: []byte("v"), Headers: []sink.Header{{Name: "old"}}, Tag: sink.Tag{Tx: 7, Ordinal: 8, Source: 9}}
	want := sink.Record{
		Topic: "outbox.event.order", Partition: sink.ByKey, Key: []byte("o-1"), Value: []byte(`{"n": 1}`), Time: eventTime,
		Headers: []sink.Header{{Name: "id", Value: []byte("id-1")}, {Name: "aggregate_type", Value: []byte("order")},
			{Name: "tenant", Value: []byte("acme")}, {Name: "tenant", Value: []byte("other")}, {Name: "none"}},
		Tag: sink.Tag{Tx: 7, Ordinal: 8, Source: 3},
	}
	for range 2 {
		if err := r.Route(sample(nil), &rec); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, rec); diff != "" {
			t.Errorf("record differs (-want +got):\n%s", diff)
		}
	}
	if err := r.Route(sample(func(ev *event.Event) { ev.Payload, ev.Partition = nil, []byte("12") }), &rec); err != nil {
		t.Fatal(err)
	}
	want.Value, want.Partition = nil, 12
	if diff := cmp.Diff(want, rec); diff != "" {
		t.Errorf("tombstone to a partition differs (-want +got):\n%s", diff)
	}
}

func TestTopics(t *testing.T) {
	t.Parallel()
	tests := []struct {
		template, want string
	}{
		{"", "outbox.event.order"},
		{"<aggregate_type>", "order"},
		{"<table>.<event_type>-v1", "public.outbox_events.order_created-v1"},
		{"<header:tenant>.<aggregate_type><aggregate_type>", "acme.orderorder"},
		{"all_events", "all_events"},
		{"_x", "_x"},
	}
	for _, tt := range tests {
		var rec sink.Record
		if err := router(t, Options{Topic: tt.template}).Route(sample(nil), &rec); err != nil || rec.Topic != tt.want {
			t.Errorf("template %q gives %q, %v; want %q", tt.template, rec.Topic, err, tt.want)
		}
	}
}

func TestRejects(t *testing.T) {
	t.Parallel()
	aggregateType := func(s string) func(*event.Event) {
		return func(ev *event.Event) { ev.AggregateType = []byte(s) }
	}
	partition := func(s string) func(*event.Event) {
		return func(ev *event.Event) { ev.Partition = []byte(s) }
	}
	bare := Options{Topic: "<aggregate_type>"}
	tests := []struct {
		name   string
		o      Options
		change func(*event.Event)
		want   string
	}{
		{"space", Options{}, aggregateType("my order"), `topic name "outbox.event.my order" has a character that is not allowed at position 16`},
		{"slash", Options{}, aggregateType("a/b"), `topic name "outbox.event.a/b" has a character that is not allowed at position 15`},
		{"unicode", Options{}, aggregateType("größe"), `topic name "outbox.event.größe" has a character that is not allowed at position 16`},
		{"control", Options{}, aggregateType("a\n"), `topic name "outbox.event.a\n" has a character that is not allowed at position 15`},
		{"too long", Options{}, aggregateType(strings.Repeat("x", 237)), `topic name "outbox.event.xxxxxxxxxxxxxxxxxxxxxxxxxxx"… is longer than 249 characters`},
		{"much too long", Options{}, aggregateType(strings.Repeat("x", 1<<20)), `topic name "outbox.event.xxxxxxxxxxxxxxxxxxxxxxxxxxx"… is longer than 249 characters`},
		{"dot", bare, aggregateType("."), `topic name "." is not allowed`},
		{"dots", bare, aggregateType(".."), `topic name ".." is not allowed`},
		{"offsets", bare, aggregateType("__consumer_offsets"), `topic name "__consumer_offsets" is reserved for Kafka itself`},
		{"transactions", bare, aggregateType("__transaction_state"), `topic name "__transaction_state" is reserved for Kafka itself`},
		{"underscores", Options{Topic: "_<aggregate_type>"}, aggregateType("_x"), `topic name "__x" is reserved for Kafka itself`},
		{"empty", bare, aggregateType(""), `no topic: the event has no value for "<aggregate_type>"`},
		{"no event type", Options{Topic: "<event_type>"}, func(ev *event.Event) { ev.Type = nil }, `no topic: the event has no value for "<event_type>"`},
		{"no header", Options{Topic: "<header:x>"}, nil, `no topic: the event has no value for "<header:x>"`},
		{"null header", Options{Topic: "<header:none>"}, nil, `no topic: the event has no value for "<header:none>"`},
		{"not allowed", Options{Allow: []string{"outbox.event.payment", "other.*"}}, nil, `topic "outbox.event.order" is not among the allowed ones`},
		{"partition text", Options{}, partition("x"), `"x" is not a partition's number`},
		{"negative partition", Options{}, partition("-1"), `"-1" is not a partition's number`},
		{"empty partition", Options{}, partition(""), `"" is not a partition's number`},
		{"huge partition", Options{}, partition("2147483648"), `"2147483648" is not a partition's number`},
		{"endless partition", Options{}, partition(strings.Repeat("9", 100)), `"` + strings.Repeat("9", 40) + `" is not a partition's number`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := router(t, tt.o)
			for range 2 { // the second time must not find the name among the known ones
				var rec sink.Record
				err := r.Route(sample(tt.change), &rec)
				var reject *event.Reject
				if !errors.As(err, &reject) {
					t.Fatalf("error is %v, want an *event.Reject", err)
				}
				if want := "event id-1 in table public.outbox_events: " + tt.want; err.Error() != want || reject.Hint() == "" {
					t.Errorf("error is\n%s, want, with a hint,\n%s", err, want)
				}
			}
			if cap(r.name) > 1024 {
				t.Errorf("the name's buffer grew to %d bytes", cap(r.name))
			}
		})
	}
}

func TestAllow(t *testing.T) {
	t.Parallel()
	for _, allow := range [][]string{nil, {"outbox.event.order"}, {"x", "outbox.*"}, {"outbox.event.[a-p]*"}, {"outbox.event.orde?"}} {
		if err := router(t, Options{Allow: allow}).Route(sample(nil), new(sink.Record)); err != nil {
			t.Errorf("allow %q: %v", allow, err)
		}
	}
}

func TestLargestPartition(t *testing.T) {
	t.Parallel()
	var rec sink.Record
	if err := router(t, Options{}).Route(sample(func(ev *event.Event) { ev.Partition = []byte("2147483647") }), &rec); err != nil || rec.Partition != 1<<31-1 {
		t.Errorf("partition %d, %v", rec.Partition, err)
	}
}

func TestNewErrors(t *testing.T) {
	t.Parallel()
	tests := []struct {
		o    Options
		want string
	}{
		{Options{Topic: "a.<aggregatetype>"}, `topic template "a.<aggregatetype>": unknown placeholder "<aggregatetype>"`},
		{Options{Topic: "a.<header:>"}, `topic template "a.<header:>": unknown placeholder "<header:>"`},
		{Options{Topic: "a.<>"}, `topic template "a.<>": unknown placeholder "<>"`},
		{Options{Topic: "a.<header:id>"}, `topic template "a.<header:id>": <header:id> would make a topic for each event`},
		{Options{Topic: "a.<table"}, `topic template "a.<table": "<table" has no closing >`},
		{Options{Topic: "a.table>"}, `topic template "a.table>": ">" cannot be in a topic's name`},
		{Options{Topic: "${aggregate_type}"}, `topic template "${aggregate_type}": "$" cannot be in a topic's name`},
		{Options{Topic: "a b<table>"}, `topic template "a b<table>": " " cannot be in a topic's name`},
		{Options{Topic: ".."}, `topic template "..": topic name ".." is not allowed`},
		{Options{Topic: "__consumer_offsets"}, `topic template "__consumer_offsets": names that begin with __ are reserved for Kafka itself`},
		{Options{Topic: "__<table>"}, `topic template "__<table>": names that begin with __ are reserved for Kafka itself`},
		{Options{Topic: "<table>" + strings.Repeat("x", 250)}, fmt.Sprintf(`topic template "<table>%s": longer than the 249 characters that a topic's name may have`, strings.Repeat("x", 250))},
		{Options{Topic: "one", Allow: []string{"two"}}, `topic template "one": the topic is not among the allowed ones`},
		{Options{Allow: []string{"a["}}, `allowed topic "a[" is not a pattern`},
		{Options{Allow: []string{""}}, `allowed topic "" is not a pattern`},
	}
	for _, tt := range tests {
		_, err := New(tt.o)
		var oe *OptionError
		if !errors.As(err, &oe) || err.Error() != tt.want || oe.Hint() == "" {
			t.Errorf("New(%+v): error is\n%v, want, with a hint,\n%s", tt.o, err, tt.want)
		}
	}
}

func TestI7TopicNamesAreBounded(t *testing.T) {
	t.Parallel()
	r := router(t, Options{})
	var rec sink.Record
	for i := range 2*maxTopics + 10 {
		name := fmt.Sprint(i)
		if err := r.Route(sample(func(ev *event.Event) { ev.AggregateType = []byte(name) }), &rec); err != nil || rec.Topic != "outbox.event."+name {
			t.Fatalf("topic %q, %v", rec.Topic, err)
		}
		if len(r.topics) > maxTopics {
			t.Fatalf("%d names are kept", len(r.topics))
		}
	}
}

func TestRouteDoesNotAllocate(t *testing.T) {
	r := router(t, Options{Topic: "<table>.<header:tenant>.<aggregate_type>.<event_type>", Allow: []string{"public.*"}})
	ev := sample(func(ev *event.Event) { ev.Partition = []byte("12") })
	var rec sink.Record
	if got := testing.AllocsPerRun(100, func() {
		if err := r.Route(ev, &rec); err != nil {
			t.Fatal(err)
		}
	}); got != 0 {
		t.Errorf("%v allocations per event, want 0", got)
	}
}

// FuzzTemplate: a template is refused or takes events to valid topics only, and
// says so the same way twice.
func FuzzTemplate(f *testing.F) {
	for _, s := range []string{DefaultTopic, "<table>", "<header:tenant>.x", "<<>>", "__", "<a\nb>", "<header:a\nb>", "a.<b", "a>b", "<header:>", "_<event_type>", ".<header:none>"} {
		f.Add(s, "order", "created")
	}
	f.Fuzz(func(t *testing.T, template, aggregateType, eventType string) {
		r, err := New(Options{Topic: template})
		if err != nil {
			var oe *OptionError
			if !errors.As(err, &oe) || strings.Contains(err.Error(), "\n") {
				t.Fatalf("error is %q", err)
			}
			return
		}
		ev := sample(func(ev *event.Event) { ev.AggregateType, ev.Type = []byte(aggregateType), []byte(eventType) })
		var first, second sink.Record
		if err := r.Route(ev, &first); err != nil {
			var reject *event.Reject
			if !errors.As(err, &reject) || strings.Contains(err.Error(), "\n") {
				t.Fatalf("error is %q", err)
			}
			return
		}
		if text, _ := checkTopic(first.Topic); text != "" {
			t.Fatalf("template %q: %s", template, text)
		}
		if err := r.Route(ev, &second); err != nil || second.Topic != first.Topic {
			t.Fatalf("the second time %q, %v; first %q", second.Topic, err, first.Topic)
		}
	})
}

func BenchmarkRoute(b *testing.B) {
	r := router(b, Options{})
	ev := sample(nil)
	var rec sink.Record
	b.ReportAllocs()
	for b.Loop() {
		if err := r.Route(ev, &rec); err != nil {
			b.Fatal(err)
		}
	}
}
