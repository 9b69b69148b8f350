package start

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/walpost/walpost/internal/debezium/connector"
	"github.com/walpost/walpost/internal/pg"
	"github.com/walpost/walpost/slot"
)

// Step is a statement that makes or completes the publication, and why.
type Step struct {
	Text      string
	Statement string
}

// Publication says what is to be done so that the publication publishes the
// tables; nothing when it does already.
func Publication(ctx context.Context, conn *pgx.Conn, spec *connector.Spec, tables []slot.Table) ([]Step, error) {
	name := spec.PublicationName
	p, err := slot.FindPublication(ctx, conn, name)
	if err != nil {
		return nil, err
	}
	if p == nil {
		return create(ctx, conn, spec, tables)
	}
	if p.AllTables || spec.PublicationAutocreate != "filtered" {
		return nil, nil // as it is; whether it will do is for the slot to say
	}
	var lacking []string
	for _, t := range tables {
		_, err := slot.CheckPublication(ctx, conn, name, []slot.Table{t})
		if err == nil {
			continue
		}
		if there, e := published(ctx, conn, name, t); e != nil || there {
			continue // in it, but not as it should be: the slot will say how
		}
		lacking = append(lacking, pg.QuoteQualified(t.Schema, t.Name))
	}
	if len(lacking) == 0 {
		return nil, nil
	}
	list := strings.Join(lacking, ", ")
	return []Step{{
		Text:      "publication " + name + " gets " + list + "; what was written to it before is not in the stream",
		Statement: "alter publication " + pg.QuoteIdent(name) + " add table " + list,
	}}, nil
}

func published(ctx context.Context, conn *pgx.Conn, name string, t slot.Table) (bool, error) {
	var there bool
	err := conn.QueryRow(ctx, "select exists (select from pg_publication_tables where pubname = $1 and schemaname = $2 and tablename = $3)",
		name, t.Schema, t.Name).Scan(&there)
	return there, err
}

func create(ctx context.Context, conn *pgx.Conn, spec *connector.Spec, tables []slot.Table) ([]Step, error) {
	name := spec.PublicationName
	switch spec.PublicationAutocreate {
	case "disabled":
		return nil, &slot.Error{
			Kind: slot.ErrPublication,
			Text: fmt.Sprintf("publication %q does not exist, and publication.autocreate.mode is disabled", name),
			Way:  "create it: " + statement(spec, tables, "insert, update"),
		}
	case "no_tables":
		return nil, &slot.Error{
			Kind: slot.ErrPublication,
			Text: fmt.Sprintf("publication %q does not exist, and publication.autocreate.mode is no_tables: it would publish nothing", name),
			Way:  "create it: " + statement(spec, tables, "insert, update"),
		}
	}
	operations, err := operations(ctx, conn, spec, tables)
	if err != nil {
		return nil, err
	}
	text := "publication " + name + " is made"
	if spec.PublicationAutocreate == "all_tables" {
		text += ", of the outbox tables only, where Debezium would take all tables"
	}
	return []Step{{Text: text, Statement: statement(spec, tables, operations)}}, nil
}

// operations that make records: inserts, and updates that change a primary
// key. To publish updates of a table without a replica identity would make the
// application's updates fail.
func operations(ctx context.Context, conn *pgx.Conn, spec *connector.Spec, tables []slot.Table) (string, error) {
	skipped := strings.Split(strings.ReplaceAll(spec.SkippedOperations, " ", ""), ",")
	if spec.HasSkipped && slices.Contains(skipped, "u") {
		return "insert", nil
	}
	for _, t := range tables {
		var identified bool
		err := conn.QueryRow(ctx, `
select c.relreplident in ('f', 'i') or c.relreplident = 'd' and exists (select from pg_index where indrelid = c.oid and indisprimary)
  from pg_class c where c.oid = $1::text::regclass`, pg.QuoteQualified(t.Schema, t.Name)).Scan(&identified)
		if err != nil {
			return "", pg.Describe(err)
		}
		if !identified {
			return "insert", nil
		}
	}
	return "insert, update", nil
}

func statement(spec *connector.Spec, tables []slot.Table, operations string) string {
	names := make([]string, len(tables))
	for i, t := range tables {
		names[i] = pg.QuoteQualified(t.Schema, t.Name)
	}
	s := "create publication " + pg.QuoteIdent(spec.PublicationName) + " for table " + strings.Join(names, ", ") +
		" with (publish = '" + operations + "'"
	if spec.PublishViaRoot {
		s += ", publish_via_partition_root = true"
	}
	return s + ")"
}
