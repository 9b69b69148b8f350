package contract

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/walpost/walpost/outbox"
)

// TestDocumentShowsTheTables: docs/contract.md has the tables as they are made.
func TestDocumentShowsTheTables(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile(filepath.Join(root, "docs", "contract.md"))
	if err != nil {
		t.Fatal(err)
	}
	sql, err := outbox.SQL(outbox.SchemaOptions{})
	if err != nil {
		t.Fatal(err)
	}
	sql = strings.ReplaceAll(sql, `"`, "")
	for _, table := range []string{"outbox_events", "processed_events", "consumer_positions"} {
		_, rest, found := strings.Cut(sql, "create table "+table+" (")
		columns, _, ended := strings.Cut(rest, ";\n")
		if !found || !ended {
			t.Fatalf("no table %s in the package's SQL:\n%s", table, sql)
		}
		if want := "create table " + table + " (" + columns + ";\n"; !strings.Contains(string(content), want) {
			t.Errorf("docs/contract.md shows another %s than is made:\n%s", table, want)
		}
	}
}
