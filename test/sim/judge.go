package sim

import (
	"fmt"
	"slices"
	"strings"
)

// judge reads what is in Kafka when everything is over, and compares it with
// what was committed.
func (w *world) judge() {
	c := w.cluster
	c.mu.Lock()
	defer c.mu.Unlock()
	want := map[string]*row{}
	var order []*row // by commit
	for _, t := range w.postgres.wal {
		for i := range t.events {
			want[t.events[i].ID] = &t.events[i]
			order = append(order, &t.events[i])
		}
	}
	for id, list := range c.copies {
		e := want[id]
		switch {
		case len(list) == 0: // truncated, and judged as lost below
		case e == nil:
			w.failEvent("uncommitted", id, "%s is in Kafka and was never committed", id)
		default:
			for _, have := range list {
				if have.key != e.Aggregate || have.topic != e.Topic || have.value != e.payload() {
					w.failEvent("I8", id, "%s is in Kafka as %s %s %q", id, have.topic, have.key, have.value)
				}
			}
			if len(list) > 1 && w.plan.protected() {
				w.failEvent("duplicate", id, "%s is in Kafka %d times: %s", id, len(list), where(list))
			}
		}
	}
	last := map[string]*copyOf{}
	for _, e := range order {
		list := c.copies[e.ID]
		if len(list) == 0 {
			w.failEvent("lost", e.ID, "%s is not in Kafka", e.ID)
			continue
		}
		first := list[0]
		key := e.Topic + "\x00" + e.Aggregate
		if before := last[key]; before != nil && before.order > first.order {
			w.failEvent("order", e.ID, "%s of %s was written before %s", e.ID, e.Aggregate, before.id)
		}
		last[key] = first
	}
}

func where(list []*copyOf) string {
	var b strings.Builder
	for _, c := range list {
		fmt.Fprintf(&b, "[%s/%d %d by %s]", c.topic, c.partition, c.offset, c.by)
	}
	return b.String()
}

// history is the trace of the event that a failure is about, with what was done
// to the servers; without an event, the end of the trace.
func (w *world) history(f failure) string {
	var b strings.Builder
	w.mu.Lock()
	list := slices.Clone(w.trace)
	w.mu.Unlock()
	if f.event == "" && len(list) > 120 {
		list = list[len(list)-120:]
	}
	lines := 0
	for _, e := range list {
		about := f.event == "" || strings.Contains(e.text, f.event)
		if !about && (strings.Contains(e.text, "commit ") || strings.Contains(e.text, "append ")) {
			continue
		}
		if lines++; lines > 300 {
			b.WriteString("\t…\n")
			break
		}
		fmt.Fprintf(&b, "\t%12v %-10s %s\n", e.at, e.who, e.text)
	}
	return b.String()
}
