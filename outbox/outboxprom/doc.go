// Package outboxprom has Prometheus metrics for an outbox.Consumer.
//
// What the consumer does is counted as it happens: pass Metrics.Observe as
// ConsumerOptions.Observe. What its tables hold is read by Metrics.Poll, now and
// then and never during a scrape. All series have the label consumer, so several
// consumers share one Metrics.
//
//	walpost_consumer_messages_total{consumer,outcome}   events dealt with
//	walpost_consumer_attempts_total{consumer,class}     runs of the handler: applied, failed, crashed
//	walpost_consumer_released_total{consumer}           parked events that were applied behind another one
//	walpost_consumer_errors_total{consumer}             calls that dealt with nothing, such as without a database
//	walpost_consumer_process_seconds{consumer}          how long an event took, attempts and waits included
//	walpost_consumer_event_age_seconds{consumer}        how old an event was when it was applied
//	walpost_consumer_parked{consumer,reason}            parked events that nobody has resolved
//	walpost_consumer_gap_open{consumer}                 those of them that wait for a version
//	walpost_consumer_gap_oldest_seconds{consumer}       since when the oldest of them waits
//	walpost_consumer_processed_rows{consumer}           rows of processed_events, as the planner estimates them
//	walpost_consumer_dedup_floor_seconds{consumer}      up to which age events are known again; none while nothing was forgotten
//	walpost_consumer_poll_errors_total{consumer}        failed polls of the tables
//
// A value that is not known has no series: after a failed poll those of the
// tables are gone. Alert on walpost_consumer_gap_oldest_seconds and on parked
// events with the reasons failed and crash.
//
// The package registers nothing by itself and has no global state.
package outboxprom
