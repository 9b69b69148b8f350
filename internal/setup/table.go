package setup

import (
	"errors"
	"strings"

	"github.com/walpost/walpost/internal/pg"
	"github.com/walpost/walpost/slot"
)

// The sequence keeps its default cache of 1: seq is the order inside an
// aggregate, and sessions that cache values of their own would break it.
const createTable = `create table {table} (
  seq               bigint generated always as identity,
  event_id          uuid primary key,
  aggregate_type    text not null,
  aggregate_id      text not null,
  aggregate_version bigint,
  event_type        text not null,
  schema_version    integer not null default 1,
  payload           {payload} not null,
  occurred_at       timestamptz not null,
  created_at        timestamptz not null default now(),
  tenant_id         text,
  traceparent       text,
  tracestate        text,
  headers           jsonb,
  check (length(aggregate_type) between 1 and 200),
  check (length(aggregate_id) between 1 and 1024)
)`

const createIndex = `create index on {table} using brin (created_at)`

const createSchema = `create schema walpost`

const createGuard = `create function walpost.append_only() returns trigger language plpgsql as $$
begin
  raise exception '%.% is append-only: % is refused', tg_table_schema, tg_table_name, lower(tg_op)
    using errcode = 'restrict_violation', hint = 'An event is a fact: write another one.';
end $$`

// A session with session_replication_role = replica skips triggers, but not
// those that are enabled always.
const (
	createUpdateTrigger   = `create trigger walpost_append_only before update on {table} for each row execute function walpost.append_only()`
	createTruncateTrigger = `create trigger walpost_append_only_truncate before truncate on {table} for each statement execute function walpost.append_only()`
	alwaysUpdate          = `alter table {table} enable always trigger walpost_append_only`
	alwaysTruncate        = `alter table {table} enable always trigger walpost_append_only_truncate`
)

const guardSchemaSQL = `select exists (select from pg_namespace where nspname = 'walpost')`

const guardFunctionSQL = `
select exists (select from pg_proc p join pg_namespace n on n.oid = p.pronamespace
                where n.nspname = 'walpost' and p.proname = 'append_only' and p.pronargs = 0)`

// Payloads are the types that the payload column can have.
var Payloads = [...]string{"jsonb", "json", "text", "bytea"}

func tableStatements(t slot.Table, payload string) []string {
	fill := strings.NewReplacer("{table}", pg.QuoteQualified(t.Schema, t.Name), "{payload}", payload)
	list := []string{createTable, createIndex, createUpdateTrigger, createTruncateTrigger, alwaysUpdate, alwaysTruncate}
	for i := range list {
		list[i] = fill.Replace(list[i])
	}
	return list
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

// created is the table that createTable makes, as the catalogue will show it.
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
