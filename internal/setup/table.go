package setup

import (
	"errors"
	"strings"

	"github.com/walpost/walpost/internal/pg"
	"github.com/walpost/walpost/outbox"
	"github.com/walpost/walpost/slot"
)

const createSchema = `create schema walpost`

const guardSchemaSQL = `select exists (select from pg_namespace where nspname = 'walpost')`

const guardFunctionSQL = `
select exists (select from pg_proc p join pg_namespace n on n.oid = p.pronamespace
                where n.nspname = 'walpost' and p.proname = 'append_only' and p.pronargs = 0)`

// Payloads are the types that the payload column can have.
var Payloads = [...]string{"jsonb", "json", "text", "bytea"}

// tableStatements make an outbox table, by the text that applications have too.
func tableStatements(t slot.Table, payload string) ([]string, error) {
	return outbox.Statements(outbox.SchemaOptions{Parts: outbox.Table, Table: pg.QuoteQualified(t.Schema, t.Name), Payload: payload})
}

// createGuard makes the function of the append-only guard: what follows the
// schema in that text.
func createGuard() (string, error) {
	list, err := outbox.Statements(outbox.SchemaOptions{Parts: outbox.Guard})
	if err != nil {
		return "", err
	}
	return list[len(list)-1], nil
}

// publicationStatement names the outbox tables only, and inserts only: a
// publication that covers more makes updates and deletes of tables without a
// replica identity fail. Rows of partitions carry the name of their table;
// where nothing is partitioned the parameter does nothing.
func publicationStatement(name string, tables []slot.Table) string {
	quoted := make([]string, len(tables))
	for i, t := range tables {
		quoted[i] = pg.QuoteQualified(t.Schema, t.Name)
	}
	return "create publication " + pg.QuoteIdent(name) + " for table " + strings.Join(quoted, ", ") +
		" with (publish = 'insert', publish_via_partition_root = true)"
}

// created is the table that tableStatements make, as the catalogue will show it.
// Configured columns may want another one.
func created(t slot.Table, payload string) *slot.Definition {
	types := map[string]uint32{"jsonb": 3802, "json": 114, "text": 25, "bytea": 17}
	def := &slot.Definition{Table: t, Persistent: true}
	for _, c := range []struct {
		name string
		oid  uint32 // pg_type.oid
	}{
		{"seq", 20}, {"event_id", 2950}, {"aggregate_type", 25}, {"aggregate_id", 25}, {"aggregate_version", 20},
		{"event_type", 25}, {"schema_version", 23}, {"payload", types[payload]}, {"occurred_at", 1184},
		{"created_at", 1184}, {"tenant_id", 25}, {"traceparent", 25}, {"tracestate", 25}, {"headers", 3802},
	} {
		def.Columns = append(def.Columns, slot.Column{Name: c.name, TypeOID: c.oid})
	}
	return def
}

// checkCreated refuses to make a table that the relay would then refuse.
func checkCreated(opt Options, t slot.Table) error {
	err := created(t, opt.Payload).Check(opt.CheckTable)
	if e, ok := errors.AsType[*slot.Error](err); ok {
		e.Way = "--create-table makes walpost's own columns: remove the table's columns and headers from the configuration, or make the table yourself"
	}
	return err
}
