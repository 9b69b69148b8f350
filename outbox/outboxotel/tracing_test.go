package outboxotel

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/walpost/walpost/outbox"
)

const (
	producerTrace = "4bf92f3577b34da6a3ce929d0e0e4736"
	producerSpan  = "00f067aa0ba902b7"
	parent        = "00-" + producerTrace + "-" + producerSpan + "-01"
)

// b3 knows one header, and not W3C's.
type b3 struct{}

func (b3) Inject(ctx context.Context, c propagation.TextMapCarrier) {
	if s := trace.SpanContextFromContext(ctx); s.IsValid() {
		c.Set("b3", s.TraceID().String()+"-"+s.SpanID().String()+"-1")
	}
}
func (b3) Extract(ctx context.Context, _ propagation.TextMapCarrier) context.Context { return ctx }
func (b3) Fields() []string                                                          { return []string{"b3"} }

// producing is a context with a span that an event may be written in.
func producing(t *testing.T) context.Context {
	t.Helper()
	return propagation.TraceContext{}.Extract(t.Context(), propagation.MapCarrier{traceparent: parent, tracestate: "vendor=1"})
}

func TestTraceContext(t *testing.T) {
	t.Parallel()
	both := propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{})
	for name, tc := range map[string]struct {
		propagator    propagation.TextMapPropagator
		span          bool
		parent, state string
	}{
		"W3C":          {propagation.TraceContext{}, true, parent, "vendor=1"},
		"and baggage":  {both, true, parent, "vendor=1"},
		"B3":           {b3{}, true, parent, "vendor=1"},
		"B3 and W3C":   {propagation.NewCompositeTextMapPropagator(b3{}, both), true, parent, "vendor=1"},
		"none":         {propagation.NewCompositeTextMapPropagator(), true, "", ""},
		"only baggage": {propagation.Baggage{}, true, "", ""},
		"no span":      {both, false, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			if tc.span {
				ctx = producing(t)
			}
			member, err := baggage.NewMember("secret", "s3cret")
			if err != nil {
				t.Fatal(err)
			}
			bag, err := baggage.New(member)
			if err != nil {
				t.Fatal(err)
			}
			gotParent, gotState := New(Options{Propagator: tc.propagator}).TraceContext(baggage.ContextWithBaggage(ctx, bag))
			if gotParent != tc.parent || gotState != tc.state {
				t.Errorf("got %q, %q, want %q, %q", gotParent, gotState, tc.parent, tc.state)
			}
		})
	}
}

// fakeTx keeps the arguments of what is executed.
type fakeTx struct {
	pgx.Tx
	args []any
}

func (f *fakeTx) Exec(_ context.Context, _ string, args ...any) (pgconn.CommandTag, error) {
	f.args = args
	return pgconn.NewCommandTag("INSERT 0 1"), nil
}

// TestWriter: a Writer writes the columns, and nothing of the baggage.
func TestWriter(t *testing.T) {
	t.Parallel()
	writer, err := outbox.NewWriter(outbox.WriterOptions{Tracer: New(Options{Propagator: propagation.TraceContext{}})})
	if err != nil {
		t.Fatal(err)
	}
	var tx fakeTx
	if err := writer.Write(producing(t), &tx, &outbox.Event{AggregateType: "order", AggregateID: "1", Type: "Placed", Payload: struct{}{}}); err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, a := range tx.args {
		if list, ok := a.([]*string); ok && len(list) == 1 && list[0] != nil {
			texts = append(texts, *list[0])
		}
	}
	if got, want := strings.Join(texts, " "), parent+" vendor=1"; got != want {
		t.Errorf("optional columns are %q, want %q", got, want)
	}
}

// rig is a Tracing whose spans are kept.
type rig struct {
	*Tracing
	provider *sdk.TracerProvider
	spans    *tracetest.InMemoryExporter
}

func setup(t *testing.T, o Options) *rig {
	t.Helper()
	r := &rig{spans: tracetest.NewInMemoryExporter()}
	r.provider = sdk.NewTracerProvider(sdk.WithSyncer(r.spans))
	t.Cleanup(func() { _ = r.provider.Shutdown(context.Background()) })
	o.TracerProvider = r.provider
	if o.Propagator == nil {
		o.Propagator = propagation.TraceContext{}
	}
	r.Tracing = New(o)
	return r
}

func message(parent string) outbox.Message {
	return outbox.Message{
		ID:            uuid.MustParse("019c1c38-a47b-8aae-b455-dda7ae98c480"),
		AggregateType: "order", AggregateID: "1", Version: 3, Type: "OrderPlaced", Traceparent: parent,
		Record: outbox.Record{Topic: "outbox.event.order", Partition: 4, Offset: 17, Key: []byte("customer"), Value: []byte("secret")},
	}
}

func TestHandler(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		options Options
		parent  string
		linked  bool
		child   bool
	}{
		"linked":           {Options{}, parent, true, false},
		"linked, B3":       {Options{Propagator: b3{}}, parent, true, false},
		"child":            {Options{Child: true}, parent, false, true},
		"without a trace":  {Options{}, "", false, false},
		"child of none":    {Options{Child: true}, "", false, false},
		"broken trace":     {Options{}, "00-nonsense", false, false},
		"none propagated":  {Options{Propagator: propagation.NewCompositeTextMapPropagator()}, parent, false, false},
		"and of no effect": {Options{Child: true, Propagator: propagation.Baggage{}}, parent, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := setup(t, tc.options)
			// The runner's own span is not the event's.
			ctx, around := r.provider.Tracer("runner").Start(t.Context(), "poll")
			var inside trace.SpanContext
			err := r.Handler(func(ctx context.Context, _ pgx.Tx, _ outbox.Message) error {
				inside = trace.SpanContextFromContext(ctx)
				return nil
			})(ctx, nil, message(tc.parent))
			if err != nil {
				t.Fatal(err)
			}
			spans := r.spans.GetSpans()
			if len(spans) != 1 {
				t.Fatalf("%d spans", len(spans))
			}
			s := spans[0]
			if s.Name != "process outbox.event.order" || s.SpanKind != trace.SpanKindConsumer || s.SpanContext.SpanID() != inside.SpanID() {
				t.Errorf("got %s of kind %v, id %v; in the handler %v", s.Name, s.SpanKind, s.SpanContext.SpanID(), inside.SpanID())
			}
			wantParent := around.SpanContext().SpanID().String()
			if tc.child {
				wantParent = producerSpan
			}
			if got := s.Parent.SpanID().String(); got != wantParent {
				t.Errorf("parent %s, want %s", got, wantParent)
			}
			if got := s.SpanContext.TraceID().String() == producerTrace; got != tc.child {
				t.Errorf("in the event's trace: %v, want %v", got, tc.child)
			}
			switch {
			case len(s.Links) > 1, tc.linked != (len(s.Links) == 1):
				t.Errorf("links %v, want one: %v", s.Links, tc.linked)
			case tc.linked && (s.Links[0].SpanContext.TraceID().String() != producerTrace || s.Links[0].SpanContext.SpanID().String() != producerSpan):
				t.Errorf("linked to %v", s.Links[0].SpanContext)
			}
			if s.Status.Code != codes.Unset {
				t.Errorf("status %v", s.Status)
			}
		})
	}
}

func TestAttributes(t *testing.T) {
	t.Parallel()
	r := setup(t, Options{Attributes: []attribute.KeyValue{attribute.String("messaging.consumer.group.name", "billing")}})
	h := r.Handler(func(context.Context, pgx.Tx, outbox.Message) error { return nil })
	if err := h(t.Context(), nil, message(parent)); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, a := range r.spans.GetSpans()[0].Attributes {
		got = append(got, string(a.Key)+"="+a.Value.String())
	}
	want := `messaging.system=kafka
messaging.operation.type=process
messaging.operation.name=process
messaging.destination.name=outbox.event.order
messaging.destination.partition.id=4
messaging.kafka.offset=17
messaging.message.id=019c1c38-a47b-8aae-b455-dda7ae98c480
outbox.aggregate_type=order
outbox.event_type=OrderPlaced
outbox.aggregate_version=3
messaging.consumer.group.name=billing`
	if text := strings.Join(got, "\n"); text != want {
		t.Errorf("got\n%s\nwant\n%s", text, want)
	}
}

// TestHandlerFails: an error is the span's too, and a panic ends the span.
func TestHandlerFails(t *testing.T) {
	t.Parallel()
	r := setup(t, Options{})
	broken := errors.New("unknown article")
	h := r.Handler(func(context.Context, pgx.Tx, outbox.Message) error { return outbox.Permanent(broken) })
	if err := h(t.Context(), nil, message(parent)); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	s := r.spans.GetSpans()[0]
	if s.Status.Code != codes.Error || s.Status.Description != "unknown article" || len(s.Events) != 1 {
		t.Errorf("status %v, events %v", s.Status, s.Events)
	}
	r.spans.Reset()
	func() {
		defer func() { _ = recover() }()
		_ = r.Handler(func(context.Context, pgx.Tx, outbox.Message) error { panic("bug") })(t.Context(), nil, message(parent))
	}()
	if n := len(r.spans.GetSpans()); n != 1 {
		t.Errorf("%d spans ended after a panic", n)
	}
}
