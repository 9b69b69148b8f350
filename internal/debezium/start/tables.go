package start

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/walpost/walpost/internal/debezium/connector"
	"github.com/walpost/walpost/internal/debezium/javaregex"
	"github.com/walpost/walpost/internal/pg"
	"github.com/walpost/walpost/slot"
)

// candidate is a table that could be captured.
type candidate struct {
	slot.Table
	partition bool
	columns   []string
}

// Debezium looks at ordinary and partitioned tables outside the system's
// schemas. Temporary ones have no WAL.
const candidatesSQL = `
select n.nspname, c.relname, c.relispartition,
       array(select a.attname::text from pg_attribute a where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped order by a.attnum)
  from pg_class c join pg_namespace n on n.oid = c.relnamespace
 where c.relkind in ('r', 'p') and c.relpersistence = 'p'
   and n.nspname not in ('pg_catalog', 'information_schema', 'pg_toast') and n.nspname not like 'pg\_temp\_%'
 order by 1, 2`

// selection is the connector's lists, compiled.
type selection struct {
	schemaInclude, schemaExclude, tableInclude, tableExclude []*javaregex.Regexp
	topic                                                    *javaregex.Regexp // of the router's predicate
	negate                                                   bool
	prefix                                                   string
}

func compile(spec *connector.Spec) (*selection, error) {
	s := &selection{negate: spec.PredicateNegate, prefix: spec.Router.TopicPrefix}
	for _, list := range []struct {
		key      string
		patterns []string
		into     *[]*javaregex.Regexp
	}{
		{"schema.include.list", spec.SchemaInclude, &s.schemaInclude},
		{"schema.exclude.list", spec.SchemaExclude, &s.schemaExclude},
		{"table.include.list", spec.TableInclude, &s.tableInclude},
		{"table.exclude.list", spec.TableExclude, &s.tableExclude},
	} {
		for _, p := range list.patterns {
			re, err := javaregex.CompileFold(p)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", list.key, err)
			}
			*list.into = append(*list.into, re)
		}
	}
	if spec.PredicateTopic != "" {
		re, err := javaregex.Compile(spec.PredicateTopic)
		if err != nil {
			return nil, fmt.Errorf("the router's predicate: %w", err)
		}
		s.topic = re
	}
	return s, nil
}

func matches(list []*javaregex.Regexp, name string) bool {
	return slices.ContainsFunc(list, func(re *javaregex.Regexp) bool { return re.MatchWhole(name) })
}

// captured says that Debezium would publish changes of the table.
func (s *selection) captured(t slot.Table) bool {
	name := t.Schema + "." + t.Name
	switch {
	case len(s.schemaInclude) > 0 && !matches(s.schemaInclude, t.Schema), matches(s.schemaExclude, t.Schema):
		return false
	case len(s.tableInclude) > 0 && !matches(s.tableInclude, name), matches(s.tableExclude, name):
		return false
	}
	return true
}

// routed says that the router sees the table's changes.
func (s *selection) routed(t slot.Table) bool {
	return s.topic == nil || s.topic.MatchWhole(s.prefix+"."+t.Schema+"."+t.Name) != s.negate
}

// Tables finds the outbox tables that the connector selects. A publication that
// Debezium would use as it is limits them further.
func Tables(ctx context.Context, conn *pgx.Conn, spec *connector.Spec) ([]slot.Table, error) {
	s, err := compile(spec)
	if err != nil {
		return nil, err
	}
	rows, err := conn.Query(ctx, candidatesSQL)
	if err != nil {
		return nil, pg.Describe(err)
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (candidate, error) {
		var c candidate
		err := row.Scan(&c.Schema, &c.Name, &c.partition, &c.columns)
		return c, err
	})
	if err != nil {
		return nil, pg.Describe(err)
	}
	within, err := publishedOnly(ctx, conn, spec)
	if err != nil {
		return nil, err
	}
	var outbox []slot.Table
	var others, misses []string
	for _, c := range all {
		switch {
		case !s.captured(c.Table) || within != nil && !within[c.Table]:
		case c.partition && len(s.tableInclude) == 0:
			// Its rows come under its own name or its root's; the root is in the list.
		case !s.routed(c.Table):
			others = append(others, c.String())
		default:
			if lacks := missing(c, spec); lacks != "" {
				others = append(others, c.String())
				misses = append(misses, c.String()+" has no column "+lacks)
				continue
			}
			outbox = append(outbox, c.Table)
		}
	}
	switch {
	case len(others) > 0:
		text := "the connector captures tables that are no outbox: " + shorten(others)
		if len(outbox) == 0 && len(misses) == 1 {
			text = "the connector's outbox table " + misses[0]
		}
		return nil, &slot.Error{
			Kind: slot.ErrTable, Text: text,
			Way: "walpost relays outbox tables only: list them in table.include.list (Debezium would stop at, or publish, the others' changes)",
		}
	case len(outbox) == 0:
		return nil, &slot.Error{
			Kind: slot.ErrTable, Text: "no table is selected by the connector's lists",
			Way: `table.include.list holds regular expressions over schema.table; "\dt *.*" shows what there is`,
		}
	}
	return outbox, nil
}

// missing names the router's columns that the table does not have.
func missing(c candidate, spec *connector.Spec) string {
	or := func(name, usual string) string {
		if name == "" {
			return usual
		}
		return name
	}
	r := &spec.Router
	var lacks []string
	for _, name := range []string{
		or(r.FieldEventID, "id"), or(r.FieldEventKey, "aggregateid"), or(r.FieldEventPayload, "payload"), or(r.RouteByField, "aggregatetype"),
	} {
		if !slices.Contains(c.columns, name) && !slices.Contains(lacks, name) {
			lacks = append(lacks, name)
		}
	}
	return strings.Join(lacks, ", ")
}

func shorten(names []string) string {
	if len(names) > 8 {
		return strings.Join(names[:8], ", ") + fmt.Sprintf(" and %d more", len(names)-8)
	}
	return strings.Join(names, ", ")
}

// The view has the partitions of a table that is published under their names, and
// the table itself where it is published under its own.
const publishedSQL = `
with published as (
  select c.oid from pg_publication_tables p
    join pg_namespace n on n.nspname = p.schemaname
    join pg_class c on c.relnamespace = n.oid and c.relname = p.tablename
   where p.pubname = $1),
family as (
  select oid from published
  union select a.relid from published p cross join lateral pg_partition_ancestors(p.oid::regclass) a
  union select t.relid from published p cross join lateral pg_partition_tree(p.oid::regclass) t)
select n.nspname::text, c.relname::text from family f join pg_class c on c.oid = f.oid join pg_namespace n on n.oid = c.relnamespace`

// publishedOnly gives the tables of a publication that is used as it is; nil
// when it does not limit anything, or will be made.
func publishedOnly(ctx context.Context, conn *pgx.Conn, spec *connector.Spec) (map[slot.Table]bool, error) {
	if spec.PublicationAutocreate == "filtered" {
		return nil, nil
	}
	p, err := slot.FindPublication(ctx, conn, spec.PublicationName)
	if err != nil || p == nil || p.AllTables {
		return nil, err
	}
	rows, err := conn.Query(ctx, publishedSQL, p.Name)
	if err != nil {
		return nil, pg.Describe(err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[slot.Table])
	if err != nil {
		return nil, pg.Describe(err)
	}
	within := make(map[slot.Table]bool, len(list))
	for _, t := range list {
		within[t] = true
	}
	return within, nil
}
