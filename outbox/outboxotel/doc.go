// Package outboxotel takes OpenTelemetry traces through the outbox: from the span
// in which an event is written to the one in which it is applied.
//
//	tracing := outboxotel.New(outboxotel.Options{})
//	writer, err := outbox.NewWriter(outbox.WriterOptions{Tracer: tracing})
//	...
//	handler := tracing.Handler(bill) // for Consumer.Process, or a runner
//
// # Writing
//
// The span that is active in the context of Writer.Write is the event's. Its
// context goes into the columns traceparent and tracestate, and from there into
// the record's headers of these names. The application's propagator decides: with
// the one for W3C headers, alone or among others, the columns are what it says;
// one that only knows other headers, such as B3, has its span put into W3C form,
// because the columns have; and without a propagator, which is OpenTelemetry's
// default, nothing is written. Baggage is not: it would be stored for as long as
// the outbox is, and be sent to every consumer.
//
// # Consuming
//
// Handler runs the application's handler in a span "process TOPIC" of kind
// consumer. It is linked to the event's, and is not its child. An event can be
// applied days after it was written, by several consumers, several times, and many
// in one transaction: children would make traces that never end, and a sampler that
// decides at the end of a trace, or a view of one, could do nothing with them. A
// link leads from one to the other all the same, and is what OpenTelemetry's
// conventions ask for. Options.Child makes it a child, for those whose events are
// applied at once and who want to see one picture.
//
// The span is in the handler's context, so statements and calls that are traced
// are its children. It has one attempt in it: a handler that is tried again has
// more spans, all linked to the same event. A message that is not applied, such as
// a duplicate, has none.
//
// # What it does not do
//
// It does not trace Kafka or the relay, and it does not know whether the
// transaction around the handler was committed: Result says that, in
// ConsumerOptions.Observe. Spans hold ids and names, never keys or payloads.
//
// It is a module of its own, so that neither walpost nor a service that does not
// trace depends on OpenTelemetry.
package outboxotel
