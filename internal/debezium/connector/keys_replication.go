package connector

import (
	"regexp"
	"slices"
	"strings"
	"time"
)

var slotForm = regexp.MustCompile(`^[a-z0-9_]{1,63}$`)

// replicationRules are about slot, publication and confirmation.
func replicationRules() []rule {
	return []rule{
		{key: "plugin.name", show: true, own: true, decide: decidePlugin},
		{key: "slot.name", def: "debezium", show: true, own: true, decide: func(r *reading, s *setting) verdict {
			v := strings.TrimSpace(s.value)
			if !slotForm.MatchString(v) {
				return malformed(s, "use a-z, 0-9 and _, at most 63 of them")
			}
			r.spec.SlotName = v
			r.over("postgres.slot", v, s)
			return same("the slot, which is taken over as it is")
		}},
		{key: "slot.drop.on.stop", def: "false", decide: boolean("drops the slot on a clean stop", func(r *reading, v bool) { r.spec.SlotDropOnStop = v })},
		{key: "slot.failover", def: "false", decide: boolean("a slot that is made gets FAILOVER on PostgreSQL 17 and later", func(r *reading, v bool) { r.spec.SlotFailover = v })},
		{key: "slot.stream.params", decide: refuseUnless([]string{""}, "walpost sets the parameters of the stream itself", "remove it")},
		{key: "slot.max.retries", decide: retries(number(0, "", func(r *reading, v int) { r.spec.SlotRetries = v }))},
		{key: "slot.retry.delay.ms", decide: retries(millis("", func(r *reading, v time.Duration) { r.spec.SlotRetryDelay = v }))},
		{key: "replica.identity.autoset.values", decide: func(_ *reading, s *setting) verdict {
			if strings.TrimSpace(s.value) == "" {
				return moot("nothing to set")
			}
			return differs(Ignored, "walpost alters no table", "Debezium alters the tables at every start",
				"an outbox needs no other replica identity than its own; set it with alter table … replica identity if it was made anew")
		}},
		{key: "publication.name", def: "dbz_publication", show: true, own: true, decide: func(r *reading, s *setting) verdict {
			v := strings.TrimSpace(s.value)
			if v == "" || len(v) > 63 {
				return malformed(s, "write the publication's name, at most 63 bytes")
			}
			r.spec.PublicationName = v
			r.over("postgres.publication", v, s)
			if v != strings.ToLower(v) {
				return noted("the publication, by this very name", "Debezium looks for this name, and makes one in lower case")
			}
			return same("the publication")
		}},
		{key: "publication.autocreate.mode", def: "all_tables", decide: decideAutocreate},
		{key: "publish.via.partition.root", def: "false", decide: boolean("used when the publication is made", func(r *reading, v bool) { r.spec.PublishViaRoot = v })},
		{key: "status.update.interval.ms", def: "10000", own: true, decide: decideStatusInterval},
		{key: "xmin.fetch.interval.ms", decide: ignore("the offsets that it is written to are not kept")},
		{key: "lsn.flush.mode", def: "connector", decide: decideFlushMode},
		{key: "flush.lsn.source", decide: func(r *reading, s *setting) verdict {
			v, way := parseBool(s)
			if way != "" {
				return malformed(s, way)
			}
			if r.set("lsn.flush.mode") {
				return ignored("lsn.flush.mode is set, and counts")
			}
			if r.spec.FlushManual = !v; !v {
				return noted(manualDoes, "")
			}
			return same(flushDoes)
		}},
		{key: "lsn.flush.timeout.*", decide: ignore("a confirmation does not block")},
		{key: "offset.mismatch.strategy", decide: ignore("the position is the slot's own, so there is no other to disagree with it")},
		{key: "log.position.check.enable", decide: ignore("walpost always checks that the slot still has the WAL it needs")},
		{key: "skipped.operations", def: "t", decide: decideSkipped},
		{key: "skip.messages.without.change", decide: ignore("it is about updates of unchanged rows, which the router drops")},
	}
}

const (
	flushDoes  = "confirms when Kafka has acknowledged, at once and up to the last transaction"
	manualDoes = "confirms nothing: the slot keeps its WAL until you advance it"
)

func decidePlugin(_ *reading, s *setting) verdict {
	switch v := strings.TrimSpace(s.value); {
	case v == "pgoutput":
		return same("pgoutput")
	case !s.set:
		return refused("not set, which means decoderbufs to Debezium, and walpost reads pgoutput",
			"if the slot's plugin is pgoutput (select plugin from pg_replication_slots), add plugin.name=pgoutput")
	default:
		return refused("walpost reads pgoutput, which every PostgreSQL has",
			"let Debezium publish everything and stop it, then name a slot made with pgoutput")
	}
}

// retries notes that walpost does not give up.
func retries(parse decide) decide {
	return func(r *reading, s *setting) verdict {
		if v := parse(r, s); v.severity == SeverityRefused {
			return v
		}
		return ignored("walpost goes on trying, with growing pauses, until it is stopped")
	}
}

func decideAutocreate(r *reading, s *setting) verdict {
	modes := []string{"disabled", "all_tables", "filtered", "no_tables"}
	v := oneOf(modes, "", func(r *reading, v string) { r.spec.PublicationAutocreate = v })(r, s)
	if v.severity == SeverityRefused {
		return v
	}
	switch r.spec.PublicationAutocreate {
	case "disabled":
		return same("a missing publication is an error")
	case "filtered":
		return noted("a missing publication is made for the outbox tables, and a missing table is added",
			"Debezium would take a table that is no longer selected out of it")
	case "no_tables":
		return noted("a missing publication is an error", "Debezium makes an empty one, and publishes nothing")
	default:
		return noted("a missing publication is made for the outbox tables", "Debezium makes it FOR ALL TABLES, which needs a superuser")
	}
}

func decideStatusInterval(r *reading, s *setting) verdict {
	d, way := parseMillis(s)
	if way != "" || d == 0 {
		return malformed(s, "write a number of milliseconds, more than 0")
	}
	const longest = 10 * time.Second
	r.spec.StatusInterval = min(d, longest)
	if s.set {
		r.over("postgres.status_interval", r.spec.StatusInterval.String(), s)
	}
	if d > longest {
		return ignored("walpost reports at least every 10 s, so that the server never takes it for dead")
	}
	return same("time between two status reports to the server")
}

func decideFlushMode(r *reading, s *setting) verdict {
	switch v := strings.ToLower(strings.TrimSpace(s.value)); v {
	case "connector":
		return same(flushDoes)
	case "manual":
		r.spec.FlushManual = true
		return noted(manualDoes, "")
	case "connector_and_driver":
		return noted(flushDoes+"; an idle slot moves on with the server's keep-alives, as always with walpost",
			"Debezium then turns on heartbeats of 10 minutes if there are none, and so does walpost")
	default:
		return malformed(s, "write one of connector, manual, connector_and_driver")
	}
}

func decideSkipped(r *reading, s *setting) verdict {
	list := splitList(strings.ToLower(s.value))
	for _, op := range list {
		if !slices.Contains([]string{"c", "u", "d", "t", "r", "none"}, op) {
			return malformed(s, "write a list of c, u, d, t, r, or none")
		}
	}
	if slices.Contains(list, "none") && len(list) > 1 {
		return malformed(s, "none stands alone")
	}
	r.spec.SkippedOperations, r.spec.HasSkipped = strings.Join(list, ","), s.set
	switch {
	case slices.Contains(list, "c"):
		return refused("c skips inserts, so that no event would be published", "remove c from the list")
	case slices.Contains(list, "r") && !slices.Contains([]string{"no_data", "never"}, strings.ToLower(r.value("snapshot.mode", "initial"))):
		return refused("r skips the rows of a snapshot, which snapshot.mode asks for", "remove r, or set snapshot.mode=no_data")
	case !slices.Contains(list, "t"):
		return noted("updates and deletes as listed; a TRUNCATE makes no record", "a TRUNCATE of the outbox would stop Debezium's task")
	default:
		return same("a row that is updated or deleted makes no record, unless an update changes the primary key and u is not skipped")
	}
}
