// Package event gives an outbox row its meaning.
//
// A Mapper holds the configured outbox tables. For each relation that the
// decoder describes it compiles a Plan, which finds the columns by the names
// that the table has at that point of the WAL, so that a renamed, added or
// dropped column takes effect with the first row written after it. A Plan turns
// rows into Events without allocating.
//
// Two shapes of table are recognised without configuration: walpost's own
// (event_id, aggregate_type, aggregate_id, event_type, payload) and Debezium's
// (id, aggregatetype, aggregateid, type, payload). Columns of any other name are
// mapped, one by one, in the configuration.
//
// The headers of an event come in a fixed order: aggregate_type, event_type,
// schema_version, aggregate_version, occurred_at, traceparent, tracestate,
// trace_id, trace_context, tracingspancontext, tenant, tenant_id, then the
// configured header columns as they are listed, then the members of the column
// headers. A column that is NULL gives no header; a null member gives a null
// header. A configured column is named by its configuration alone and leaves its
// place in the fixed order. A column is a header exactly as PostgreSQL prints it.
//
// What it promises:
//
//   - A row that does not make an event is a *Reject that names table, column,
//     event id and LSN (I3: never skipped).
//   - Id and payload are the bytes that PostgreSQL sent; only a bytea payload is
//     decoded from its hex form (I8). A domain over bytea cannot be told from
//     text on the wire and stays in its hex form.
//   - A timestamp that Kafka cannot hold never stops an event: the commit time
//     takes its place, and the event says so.
//
// It knows nothing of topics and partitions, and decides nothing about what
// happens to a rejected row.
package event
