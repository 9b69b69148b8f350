package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/walpost/walpost/internal/testkit/kafkaserver"
)

// result is a scenario and what came of it.
type result struct {
	scenario scenario
	found    finding
	took     time.Duration
}

// report is a table in Markdown, of at least one result.
func report(args []string, results []result) string {
	var out strings.Builder
	fmt.Fprintf(&out, "`go run ./test/conformance %s` (%s, Kafka %s)\n\n", quoted(args), results[0].found.server, kafkaserver.Version)
	out.WriteString("| scenario | verdict | what was seen | seconds |\n|---|---|---|---|\n")
	for _, r := range results {
		fmt.Fprintf(&out, "| %s | %s | %s | %.0f |\n", r.scenario.name, r.found.verdict(),
			strings.ReplaceAll(r.found.explain(), "|", `\|`), r.took.Seconds())
	}
	return out.String()
}

// quoted is a command line that a shell reads back.
func quoted(args []string) string {
	words := make([]string, len(args))
	for i, a := range args {
		words[i] = a
		if strings.ContainsAny(a, " \t\"'$`\\;&|<>()*?") {
			words[i] = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
		}
	}
	return strings.Join(words, " ")
}
