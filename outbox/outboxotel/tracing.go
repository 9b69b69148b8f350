package outboxotel

import (
	"context"
	"slices"
	"strconv"

	"github.com/jackc/pgx/v5"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/walpost/walpost/outbox"
)

// Options of a Tracing. The zero value uses what the application has set up
// globally.
type Options struct {
	// TracerProvider makes the consumer's spans; nil is the global one.
	TracerProvider trace.TracerProvider
	// Propagator is the application's; nil is the global one, as it is when an
	// event is written or applied.
	Propagator propagation.TextMapPropagator
	// Child makes the consumer's span a child of the event's, in the same trace,
	// instead of linking it.
	Child bool
	// Attributes are added to the consumer's spans.
	Attributes []attribute.KeyValue
}

// Tracing is an outbox.Tracer, and wraps handlers. It is safe for concurrent use.
type Tracing struct {
	opt    Options
	tracer trace.Tracer
}

var _ outbox.Tracer = (*Tracing)(nil)

// scope is the name under which the spans are made.
const scope = "github.com/walpost/walpost/outbox/outboxotel"

// New makes a Tracing.
func New(o Options) *Tracing {
	if o.TracerProvider == nil {
		o.TracerProvider = otel.GetTracerProvider() // later settings reach it, too
	}
	o.Attributes = slices.Clone(o.Attributes)
	return &Tracing{opt: o, tracer: o.TracerProvider.Tracer(scope)}
}

const (
	traceparent = "traceparent"
	tracestate  = "tracestate"
)

// w3c is the form that the columns have.
var w3c propagation.TraceContext

func (t *Tracing) propagator() propagation.TextMapPropagator {
	if t.opt.Propagator != nil {
		return t.opt.Propagator
	}
	return otel.GetTextMapPropagator()
}

// foreign says of a propagator that it knows headers, but not the columns'.
func foreign(p propagation.TextMapPropagator) bool {
	fields := p.Fields()
	return len(fields) > 0 && !slices.Contains(fields, traceparent) && !onlyBaggage(fields)
}

// onlyBaggage says that a propagator carries no trace at all.
func onlyBaggage(fields []string) bool {
	return len(fields) == 1 && fields[0] == "baggage"
}

// TraceContext is the context of the span that is active in ctx, as the columns
// have it; empty when there is none, or the application propagates none.
func (t *Tracing) TraceContext(ctx context.Context) (parent, state string) {
	carrier := propagation.MapCarrier{}
	p := t.propagator()
	if foreign(p) {
		w3c.Inject(ctx, carrier)
	} else {
		p.Inject(ctx, carrier)
	}
	return carrier[traceparent], carrier[tracestate]
}

// extract puts the event's span into ctx as a remote one.
func (t *Tracing) extract(ctx context.Context, m *outbox.Message) context.Context {
	carrier := propagation.MapCarrier{}
	if m.Traceparent != "" {
		carrier[traceparent] = m.Traceparent
	}
	if m.Tracestate != "" {
		carrier[tracestate] = m.Tracestate
	}
	p := t.propagator()
	if foreign(p) {
		return w3c.Extract(ctx, carrier)
	}
	return p.Extract(ctx, carrier)
}

// Handler is next inside of a span that is linked to the event's.
func (t *Tracing) Handler(next outbox.Handler) outbox.Handler {
	return func(ctx context.Context, tx pgx.Tx, m outbox.Message) error {
		ctx, span := t.start(ctx, &m)
		defer span.End() // also when next panics
		err := next(ctx, tx, m)
		if err != nil {
			span.RecordError(err)
			span.SetStatus(codes.Error, err.Error())
		}
		return err
	}
}

func (t *Tracing) start(ctx context.Context, m *outbox.Message) (context.Context, trace.Span) {
	options := []trace.SpanStartOption{
		trace.WithSpanKind(trace.SpanKindConsumer),
		trace.WithAttributes(attributes(m)...),
		trace.WithAttributes(t.opt.Attributes...),
	}
	// Extracted from nothing: the span that may be active in ctx is not the
	// event's.
	event := trace.SpanContextFromContext(t.extract(context.WithoutCancel(trace.ContextWithSpanContext(ctx, trace.SpanContext{})), m))
	switch {
	case !event.IsValid():
	case t.opt.Child:
		ctx = trace.ContextWithRemoteSpanContext(ctx, event)
	default:
		options = append(options, trace.WithLinks(trace.Link{SpanContext: event}))
	}
	return t.tracer.Start(ctx, "process "+m.Topic, options...)
}

// attributes are named as OpenTelemetry's conventions for messaging name them.
func attributes(m *outbox.Message) []attribute.KeyValue {
	list := []attribute.KeyValue{
		attribute.String("messaging.system", "kafka"),
		attribute.String("messaging.operation.type", "process"),
		attribute.String("messaging.operation.name", "process"),
		attribute.String("messaging.destination.name", m.Topic),
		attribute.String("messaging.destination.partition.id", strconv.Itoa(int(m.Partition))),
		attribute.Int64("messaging.kafka.offset", m.Offset),
		attribute.String("messaging.message.id", m.ID.String()),
		attribute.String("outbox.aggregate_type", m.AggregateType),
		attribute.String("outbox.event_type", m.Type),
	}
	if m.Version > 0 {
		list = append(list, attribute.Int64("outbox.aggregate_version", m.Version))
	}
	return list
}
