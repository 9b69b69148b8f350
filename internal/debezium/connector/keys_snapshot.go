package connector

import (
	"slices"
	"strings"
)

// snapshotRules are about the rows that are there before the stream.
func snapshotRules() []rule {
	const one = "a snapshot of an outbox is read by one connection, in the order of the primary key"
	const never = "only an incremental snapshot uses it, and walpost takes no signals"
	return []rule{
		{key: "snapshot.mode", def: "initial", show: true, decide: decideSnapshotMode},
		{key: "snapshot.mode.configuration.based.*", decide: ignore("it belongs to snapshot.mode=configuration_based")},
		{key: "snapshot.mode.custom.name", decide: ignore("it belongs to snapshot.mode=custom")},
		{key: "snapshot.select.statement.overrides", decide: refuseUnless([]string{""}, "walpost reads the outbox as it is", "remove it, or take the rows that must not be published out of the table")},
		{key: "snapshot.select.statement.overrides.*", decide: ignore("it belongs to snapshot.select.statement.overrides")},
		{key: "snapshot.include.collection.list", decide: decideSnapshotTables},
		{key: "snapshot.query.mode", decide: refuseUnless([]string{"select_all"}, "a Java class makes the query", "remove it")},
		{key: "snapshot.query.mode.custom.name", decide: ignore("it belongs to snapshot.query.mode=custom")},
		{key: "snapshot.locking.mode", decide: func(_ *reading, s *setting) verdict {
			if strings.EqualFold(strings.TrimSpace(s.value), "none") {
				return moot("no table is locked")
			}
			return ignored("no table is locked: the slot's own snapshot tells rows before it from changes behind it")
		}},
		{key: "snapshot.locking.mode.custom.name", decide: ignore("no table is locked")},
		{key: "snapshot.isolation.mode", decide: ignore("the slot's own snapshot tells rows before it from changes behind it")},
		{key: "snapshot.lock.timeout.ms", decide: ignore("no table is locked")},
		{key: "snapshot.fetch.size", decide: ignore("memory is bounded by relay.in_flight_bytes")},
		{key: "snapshot.max.threads", decide: ignore(one)},
		{key: "snapshot.max.threads.multiplier", decide: ignore(one)},
		{key: "snapshot.tables.order.by.row.count", decide: ignore(one)},
		{key: "snapshot.delay.ms", decide: ignore("walpost begins at once")},
		{key: "streaming.delay.ms", decide: ignore("walpost begins at once")},
		{key: "min.row.count.to.stream.results", decide: ignore(one)},
		{key: "incremental.snapshot.*", decide: ignore(never)},
		{key: "signal.data.collection", decide: refuseUnless([]string{""}, "walpost takes no signals",
			"remove it, and the signal table from table.include.list and the publication; to publish rows again, write them again")},
		{key: "signal.enabled.channels", decide: refuseUnless([]string{"", "source"}, "walpost takes no signals", "remove it")},
		{key: "signal.kafka.*", decide: ignore(never)},
		{key: "signal.file", decide: ignore(never)},
		{key: "signal.poll.interval.ms", decide: ignore(never)},
		{key: "signal.consumer.*", decide: ignore(never)},
		{key: "read.only", decide: refuseUnless([]string{"false"}, "it is about incremental snapshots, which walpost does not have", "remove it")},
	}
}

func decideSnapshotMode(r *reading, s *setting) verdict {
	mode := strings.ToLower(strings.TrimSpace(s.value))
	switch mode {
	case "initial":
		r.spec.SnapshotMode = mode
		const does = "publishes the rows that are in the table when nothing was published yet, then streams"
		if !s.set {
			return noted(does+"; set no_data if the rows that are there must not be published", "")
		}
		return same(does)
	case "no_data":
		r.spec.SnapshotMode = mode
		return same("streams from the slot's position, without a snapshot")
	case "never":
		r.spec.SnapshotMode = "no_data"
		if r.version.atLeast(3, 1) {
			return noted("streams without a snapshot, as no_data does", "Debezium took this value up to 3.0, and refuses it since")
		}
		return same("streams without a snapshot")
	case "initial_only", "always", "when_needed":
		r.spec.SnapshotMode = mode
		return same(map[string]string{
			"initial_only": "publishes the rows that are in the table, then stops",
			"always":       "publishes the rows that are in the table at every start, then streams",
			"when_needed":  "streams; publishes the rows that are in the table when the slot has lost its WAL",
		}[mode])
	case "exported":
		return refused("Debezium does not take it any more", "write initial, which does the same")
	case "custom", "configuration_based":
		return refused("walpost has no snapshots of this kind", "choose one of initial, no_data, initial_only, always, when_needed")
	default:
		return malformed(s, "write one of initial, no_data, initial_only, always, when_needed")
	}
}

func decideSnapshotTables(r *reading, s *setting) verdict {
	if slices.Contains([]string{"no_data", "never"}, strings.ToLower(r.value("snapshot.mode", "initial"))) {
		return ignored("there is no snapshot")
	}
	v := strings.TrimSpace(s.value)
	if v == "" || v == r.value("table.include.list", "") {
		return moot("the same tables as are captured")
	}
	return refused("a snapshot reads all captured tables", "remove it, or set snapshot.mode=no_data")
}
