package main

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"
)

// writeReport writes what happened, in Markdown.
func (b *bench) writeReport(failure error) error {
	var out strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&out, format+"\n", args...) }
	verdict := "passed"
	if failure != nil {
		verdict = "FAILED"
	}
	line("# Chaos: seed %d, %d rounds, %s", b.opt.seed, len(b.rounds), verdict)
	line("")
	line("    go run ./test/chaos %s", strings.Join(os.Args[1:], " "))
	line("")
	line("%s; %s with %d broker(s); %s.", b.servers.pg, b.servers.kafka, b.opt.brokers, time.Since(b.began).Round(time.Second))
	line("")
	j := b.judge
	line("| | |")
	line("|---|---:|")
	for _, row := range []struct {
		name string
		n    int
	}{
		{"rounds", len(b.rounds)},
		{"committed events", len(j.truth.events)},
		{"records in Kafka", j.arrived + len(j.strangers)},
		{"lost", len(j.lost)},
		{"duplicated", len(j.copies)},
		{"out of order within a key, first copies", len(j.misordered)},
		{"out of order within a key, repeats", j.backwards},
		{"keys in a second partition without a change of partitions", len(j.moved)},
		{"key or payload altered", len(j.wrong)},
		{"records that were never committed", len(j.strangers)},
		{"confirmed before Kafka had them", len(j.unbacked)},
		{"violations of the protocol's rules", len(b.complaints)},
		{"replication sessions", b.recorder.sessions},
		{"status updates checked", b.recorder.updates},
		{"samples of position against partitions", len(b.sampler.all())},
		{"starts of the relay", b.first.starts + b.second.starts},
	} {
		line("| %s | %d |", row.name, row.n)
	}
	for _, what := range slices.Sorted(maps.Keys(b.counts)) {
		line("| %s | %d |", what, b.counts[what])
	}
	line("")
	line("Exit codes of the relay (-1 is SIGKILL): %s.", exitCodes(b.first, b.second))
	var healing []time.Duration
	for _, r := range b.rounds {
		if !r.ended.IsZero() {
			healing = append(healing, r.healing)
		}
	}
	if len(healing) > 0 {
		slices.Sort(healing)
		line("Caught up after a fault within %.1f s in half of the rounds, %.1f s at most.",
			healing[len(healing)/2].Seconds(), healing[len(healing)-1].Seconds())
	}
	line("")
	line("| fault | drawn | |")
	line("|---|---:|---|")
	for _, f := range catalogue() {
		if n := b.drawn[f.name]; n > 0 || !f.three || b.opt.brokers == 3 {
			line("| %s | %d | %s |", f.name, n, f.what)
		}
	}
	if failure != nil {
		line("")
		line("```")
		line("%v", failure)
		line("```")
	}
	return os.WriteFile(b.opt.report, []byte(out.String()), 0o644)
}

func exitCodes(instances ...*instance) string {
	codes := map[int]int{}
	for _, i := range instances {
		i.mu.Lock()
		for code, n := range i.codes {
			codes[code] += n
		}
		i.mu.Unlock()
	}
	var parts []string
	for _, code := range slices.Sorted(maps.Keys(codes)) {
		parts = append(parts, fmt.Sprintf("%d: %d times", code, codes[code]))
	}
	return strings.Join(parts, ", ")
}
