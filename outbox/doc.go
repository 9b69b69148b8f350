// Package outbox is the application's half of the transactional outbox: it
// writes an event in the transaction of the change that the event tells of, and
// it applies a delivered event once. Between the two, walpost carries the event
// from PostgreSQL to Kafka; this package does not need it, nor any Kafka client.
//
// # Tables
//
// Migrate makes them, at every start if you like: instances wait for each other,
// and all but the first find nothing to do.
//
//	report, err := outbox.Migrate(ctx, pool, outbox.MigrateOptions{})
//
// SQL gives the same statements as text, FS as numbered files for goose,
// golang-migrate and Atlas. What "walpost init --create-table" made is taken
// over. The outbox is append-only: triggers refuse to update or truncate it, also
// for sessions that replicate. Deleting is for cleanup.
//
// # Grants
//
// A service that writes needs INSERT on the outbox and nothing else; for
// NextVersions also USAGE on the schema walpost and SELECT, INSERT and UPDATE on
// walpost.aggregate_versions. A consumer needs SELECT, INSERT, UPDATE and DELETE
// on processed_events, consumer_positions, parked_events, consumer_floors and
// consumer_starts.
//
// # Writing
//
// RunTx writes the events last, when the aggregate's row is written and locked.
// That makes the order of insertion the order of commits:
//
//	err := outbox.RunTx(ctx, pool, writer, func(tx pgx.Tx, events *outbox.Buffer) error {
//		var version int64
//		err := tx.QueryRow(ctx, `update orders set status = 'paid', version = version + 1
//			where id = $1 returning version`, id).Scan(&version)
//		events.Add(&outbox.Event{AggregateType: "order", AggregateID: id, Version: version,
//			Type: "OrderPaid", Payload: paid})
//		return err
//	})
//
// In a transaction of your own call Writer.Write, or Writer.WriteSQL with
// database/sql and what wraps it, and keep that order. Writer.Copy is for many.
// Every event is validated before the first statement, so one that is refused
// (ErrInvalid, ErrTooLarge) leaves the transaction as it was.
//
// Give events versions. The version is the aggregate's, it counts its events, and
// it has no holes: only so can a consumer tell a late event from a lost one.
// NextVersions counts for aggregates without a version column. An aggregate that
// is deleted and made anew with version 1 needs a new id, or its events are Stale.
//
// A command that can arrive twice, such as a request that a client repeats, gives
// its event an id of DeriveID; then ErrIDTaken says that it was carried out.
//
// # Consuming
//
// Parse makes a Message of a record, and Consumer.Process applies it: the event's
// id, the aggregate's version and the effect of the handler are one transaction.
//
//	m, err := outbox.Parse(record, headers)
//	...
//	result, err := consumer.Process(ctx, m, func(ctx context.Context, tx pgx.Tx, m outbox.Message) error {
//		_, err := tx.Exec(ctx, `insert into invoices ...`)
//		return err
//	})
//	if err == nil {
//		// Commit the offset.
//	}
//
// This is the whole contract with the loop that reads Kafka: commit the offset
// when there is no error, whatever the outcome, and call again when there is one.
// ProcessBatch takes many messages in one transaction; ProcessTx works inside of
// yours.
//
// What can become of a message:
//
//	Applied    the handler ran and is committed
//	Duplicate  the event was applied before
//	Stale      its version was passed before
//	Parked     it is in parked_events: its version is not the next (gap), its
//	           handler failed MaxAttempts times (failed), or it ended the process
//	           three times (crash)
//	Held       it waits in parked_events behind an earlier event of its aggregate
//	TooOld     it is in parked_events, because it is below the floor
//
// Parking keeps one aggregate back and lets the rest go on. A gap closes by
// itself when the missing version comes; what failed waits for Consumer.Resume,
// which goes through the aggregate in order and stops at its first failure, or for
// Consumer.Discard. Consumer.Parked lists what there is, Consumer.Stats counts it:
// alert on the age of the oldest gap, and on anything parked as failed.
//
// # Forgetting
//
// Versioned events can be consumed without a row for each: ByVersion keeps one row
// per aggregate, for ever. Rows of processed_events must stay as long as their
// event can come again, from the topic or a replay. Consumer.Sweep deletes older
// ones, and ConsumerOptions.Floor is the promise that goes with it: an event
// older than the floor is not applied but parked, so nothing that was forgotten
// is done twice. The age is that in the id (UUID version 7), or else the header
// occurred_at; an event without either counts as too old. Clocks may differ by
// less than an hour.
//
// # What it guarantees
//
//   - O1 An event is there exactly if its transaction is committed.
//   - O2 A rejected event leaves the transaction usable.
//   - O3 Id and bytes of an event stay the same, also parked and resumed. (A jsonb
//     column keeps the value, not the spelling, from the first insert on.)
//   - O6 An event has one effect per consumer, however often and to however many
//     instances it is delivered.
//   - O7 Versions apply in order, without holes, from the first one seen.
//   - O8 An offset may be committed exactly when the effect, or the parked event,
//     is durable.
//   - O10 An event below the floor is not applied.
//   - O11 Resuming keeps an aggregate's order and stops at the first failure.
//
// They hold in every isolation level. Under REPEATABLE READ and SERIALIZABLE
// conflicts are tried again; see BeginWith.
//
// # Cost
//
// An event adds one round trip to its transaction, and so do up to 1000. A message
// takes as many round trips as its handler in a plain transaction: BEGIN travels
// with the statements that claim the message. A duplicate takes two, and one when
// it comes after another duplicate, as after a restart or in a replay. That is so
// for a *pgxpool.Pool or a *pgx.Conn, as it is or in BeginWith without a
// BeginQuery; the Begin of any other Beginner is called, which is one round trip
// more.
//
// # Poolers
//
// Everything works behind PgBouncer in transaction mode: only locks of the
// transaction are taken. pgx's prepared statements do not, so its connection
// string needs default_query_exec_mode=exec.
//
// # What it does not do
//
// It does not make effects outside of the database happen once: a handler that
// calls another service must pass Message.ID on as an idempotency key. It does not
// read Kafka, delete from the outbox, or publish.
package outbox
