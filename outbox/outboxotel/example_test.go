package outboxotel_test

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/walpost/walpost/outbox"
	"github.com/walpost/walpost/outbox/outboxotel"
)

func bill(context.Context, pgx.Tx, outbox.Message) error { return nil }

// The spans of the two services are in traces of their own, and linked.
func Example() {
	spans := tracetest.NewInMemoryExporter() // a service has an exporter of OTLP
	tracing := outboxotel.New(outboxotel.Options{
		TracerProvider: trace.NewTracerProvider(trace.WithSyncer(spans)),
		Propagator:     propagation.TraceContext{}, // a service has set it globally
	})
	ctx := context.Background()

	// In the service that writes:
	writer, err := outbox.NewWriter(outbox.WriterOptions{Tracer: tracing})
	if err != nil {
		fmt.Println(err)
		return
	}
	_ = writer // Write, or RunTx, as always

	// In the service that consumes, for Consumer.Process or a runner:
	handler := tracing.Handler(bill)
	const parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01" // as the record has it
	m := outbox.Message{Traceparent: parent, Record: outbox.Record{Topic: "outbox.event.order"}}
	if err := handler(ctx, nil, m); err != nil {
		fmt.Println(err)
		return
	}
	for _, s := range spans.GetSpans() {
		fmt.Println(s.Name, "linked to", s.Links[0].SpanContext.TraceID())
	}
	// Output:
	// process outbox.event.order linked to 4bf92f3577b34da6a3ce929d0e0e4736
}
