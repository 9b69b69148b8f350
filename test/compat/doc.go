// Compat compares walpost with the Debezium that it takes the place of, record
// by record, on real servers.
//
//	go run ./test/compat -golden DIR             # recorded corpora, one line each
//	go run ./test/compat -seed 1 -configs 20     # random ones, both live
//	go run ./test/compat -swap                   # Debezium, walpost, Debezium
//	go run ./test/compat -regenerate DIR         # record corpora anew
//	go run ./test/compat -import DIR             # recorded elsewhere into our form
//
// # A corpus
//
// A corpus is a table, rows, a connector's configuration, and what Debezium put
// on Kafka for them. It is a folder of table.sql (run before the connector
// starts), rows.sql (once its slot is active), connector.json, outcome.json (the
// task's state at the end, with its error) and records.jsonl; or one file of the
// same parts in testdata, where keys and values are text as far as they are text.
// Topics have 12 partitions.
//
// # What is compared
//
// Of each record topic, partition, key, value, all headers in their order, and
// timestamp; in each partition the order. Except:
//
//   - the value of __debezium.context.runId, which is new at every start: it has
//     to be a UUID of version 7
//   - a timestamp that is the connector's clock: it has to lie in the run
//   - the partition of a record without key, which is the producer's choice: such
//     records of a topic are compared in the order of their event ids
//   - positions and times of the run in a logical message's value
//
// Where Debezium's task fails, walpost has to refuse the configuration or to hold
// at the row, and to say why; what it has published until then has to be what
// Debezium published, partition by partition, and nothing else.
//
// It does not test how records survive crashes: chaos and conformance do.
package main
