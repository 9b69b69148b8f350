package start

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"go.uber.org/zap"

	"github.com/walpost/walpost/internal/debezium/connector"
	"github.com/walpost/walpost/internal/pg"
	"github.com/walpost/walpost/internal/testkit"
	"github.com/walpost/walpost/slot"
)

const columns = ` (id uuid primary key, aggregatetype text, aggregateid text, type text, payload json)`

// database has an outbox table "out" and whatever statements make.
func database(t *testing.T, major int, statements ...string) (dsn string) {
	t.Helper()
	dsn = testkit.Postgres(t, major).NewDB(t)
	testkit.Exec(t, dsn, append([]string{"create table out" + columns}, statements...)...)
	return dsn
}

// spec is a connector that captures public.out, filtered.
func spec(change func(*connector.Spec)) *connector.Spec {
	s := &connector.Spec{PublicationName: "p", PublicationAutocreate: "filtered", TableInclude: []string{`public\.out`}}
	s.Router.TopicPrefix = "app"
	if change != nil {
		change(s)
	}
	return s
}

func run(t *testing.T, dsn string, s *connector.Spec, more ...func(*Options)) (tables string, err error) {
	t.Helper()
	opt := Options{Spec: s, Slot: testkit.Unique("start"), Log: zap.NewNop()}
	for _, f := range more {
		f(&opt)
	}
	list, err := Run(t.Context(), testkit.Connect(t, dsn), opt)
	var names []string
	for _, table := range list {
		names = append(names, table.String())
	}
	return strings.Join(names, " "), err
}

// inCatalog is the publication as the catalog has it: its tables, then what it
// publishes.
func inCatalog(t *testing.T, dsn string) string {
	t.Helper()
	var text string
	err := testkit.Connect(t, dsn).QueryRow(t.Context(), `
select coalesce((select case when puballtables then 'all' else coalesce((select string_agg(relname, ' ' order by relname desc) from pg_publication_rel join pg_class c on c.oid = prrelid where prpubid = p.oid), '') end
    || concat(case when pubinsert then ' +insert' end, case when pubupdate then ' +update' end, case when pubdelete then ' +delete' end,
              case when pubtruncate then ' +truncate' end, case when pubviaroot then ' via root' end)
  from pg_publication p where pubname = 'p'), 'none')`).Scan(&text)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestPublication: what each mode makes of each publication that it can find.
func TestPublication(t *testing.T) {
	t.Parallel()
	other := "create table other (n int primary key)"
	for name, test := range map[string]struct {
		mode   string
		before []string
		change func(*connector.Spec)
		want   string // the publication
		fault  string
		hint   string
	}{
		"filtered, none":           {mode: "filtered", want: "out +insert +update"},
		"filtered, complete":       {mode: "filtered", before: []string{"create publication p for table out"}, want: "out +insert +update +delete +truncate"},
		"filtered, without":        {mode: "filtered", before: []string{other, "create publication p for table other with (publish = 'insert')"}, want: "out other +insert"},
		"filtered, empty":          {mode: "filtered", before: []string{"create publication p"}, want: "out +insert +update +delete +truncate"},
		"filtered, all tables":     {mode: "filtered", before: []string{"create publication p for all tables"}, want: "all +insert +update +delete +truncate"},
		"all_tables, none":         {mode: "all_tables", want: "out +insert +update"},
		"all_tables, all tables":   {mode: "all_tables", before: []string{"create publication p for all tables"}, want: "all +insert +update +delete +truncate"},
		"all_tables, without":      {mode: "all_tables", before: []string{other, "create publication p for table other"}, fault: "no table is selected", hint: "table.include.list"},
		"disabled, none":           {mode: "disabled", fault: `publication "p" does not exist, and publication.autocreate.mode is disabled`, hint: `create publication "p" for table "public"."out"`, want: "none"},
		"disabled, complete":       {mode: "disabled", before: []string{"create publication p for table out"}, want: "out +insert +update +delete +truncate"},
		"no_tables, none":          {mode: "no_tables", fault: "it would publish nothing", hint: "create publication", want: "none"},
		"no_tables, complete":      {mode: "no_tables", before: []string{"create publication p for table out"}, want: "out +insert +update +delete +truncate"},
		"mixed case":               {mode: "filtered", before: []string{`create publication "P"`}, want: "out +insert +update"},
		"updates skipped":          {mode: "filtered", change: func(s *connector.Spec) { s.HasSkipped, s.SkippedOperations = true, "u, d,t" }, want: "out +insert"},
		"only truncates skipped":   {mode: "filtered", change: func(s *connector.Spec) { s.HasSkipped, s.SkippedOperations = true, "t" }, want: "out +insert +update"},
		"no replica identity":      {mode: "filtered", before: []string{"alter table out drop constraint out_pkey"}, want: "out +insert"},
		"replica identity nothing": {mode: "filtered", before: []string{"alter table out replica identity nothing"}, want: "out +insert"},
		"via root":                 {mode: "filtered", change: func(s *connector.Spec) { s.PublishViaRoot = true }, want: "out +insert +update via root"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn := database(t, 18, test.before...)
			s := spec(test.change)
			s.PublicationAutocreate = test.mode
			for range 2 { // the second time it is there
				tables, err := run(t, dsn, s)
				if test.fault != "" {
					e, ok := errors.AsType[*slot.Error](err)
					if !ok || !strings.Contains(e.Error(), test.fault) || !strings.Contains(e.Hint(), test.hint) {
						t.Fatalf("got %v, want %q and %q", err, test.fault, test.hint)
					}
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				if tables != "public.out" {
					t.Errorf("tables %q", tables)
				}
			}
			if test.want != "" {
				if diff := cmp.Diff(test.want, inCatalog(t, dsn)); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

// TestTables: which tables the lists select.
func TestTables(t *testing.T) {
	t.Parallel()
	partitioned := []string{
		`create table part (id uuid, aggregatetype text, aggregateid text, type text, payload json, n int) partition by list (n)`,
		`create table part_1 partition of part for values in (1)`,
		`create table part_2 partition of part default`,
	}
	for name, test := range map[string]struct {
		before []string
		change func(*connector.Spec)
		want   string
		fault  string
	}{
		"whole name":      {change: func(s *connector.Spec) { s.TableInclude = []string{"out"} }, fault: "no table is selected"},
		"any case":        {change: func(s *connector.Spec) { s.TableInclude = []string{`PUBLIC.Ou.`} }, want: "public.out"},
		"schema and case": {change: func(s *connector.Spec) { s.SchemaInclude, s.TableInclude = []string{"PUBLI."}, nil }, want: "public.out"},
		"another schema":  {change: func(s *connector.Spec) { s.SchemaInclude = []string{"app"} }, fault: "no table is selected"},
		"excluded":        {change: func(s *connector.Spec) { s.TableInclude, s.TableExclude = nil, []string{"public.OUT"} }, fault: "no table is selected"},
		"upper case table": {
			before: []string{`create schema "App"`, `create table "App"."Out"` + columns},
			change: func(s *connector.Spec) { s.TableInclude = []string{`app\.out`} }, want: `"App"."Out"`,
		},
		"no outbox": {
			before: []string{"create table business (id int primary key)"},
			change: func(s *connector.Spec) { s.TableInclude = []string{"public.*"} }, fault: "captures tables that are no outbox: public.business",
		},
		"columns missing": {
			before: []string{"alter table out drop column aggregatetype"}, fault: "public.out has no column aggregatetype",
		},
		"renamed columns": {
			before: []string{"alter table out rename aggregatetype to kind"},
			change: func(s *connector.Spec) { s.Router.RouteByField = "kind" }, want: "public.out",
		},
		"predicate": {change: func(s *connector.Spec) { s.PredicateTopic = `app\.public\.out` }, want: "public.out"},
		"predicate leaves it out": {
			change: func(s *connector.Spec) { s.PredicateTopic = `app\.public\.outbox` }, fault: "no outbox: public.out",
		},
		"negated predicate": {
			change: func(s *connector.Spec) { s.PredicateTopic, s.PredicateNegate = `.*business`, true }, want: "public.out",
		},
		"partitions without a list": {
			before: append(partitioned, "drop table out"), change: func(s *connector.Spec) { s.TableInclude = nil }, want: "public.part",
		},
		"a root that is published through its partitions": {
			before: append(partitioned, "create publication p for table part"),
			change: func(s *connector.Spec) {
				s.TableInclude, s.PublicationAutocreate = []string{`public\.part`}, "disabled"
			}, want: "public.part",
		},
		"partitions that are published through their root": {
			before: append(partitioned, "create publication p for table part with (publish_via_partition_root)"),
			change: func(s *connector.Spec) {
				s.TableInclude, s.PublicationAutocreate = []string{`public\.part.*`}, "disabled"
			},
			want: "public.part public.part_1 public.part_2",
		},
		"unlogged": {before: []string{"alter table out set unlogged"}, fault: "no table is selected"},
		"a view":   {before: []string{"create view seen as select * from out"}, change: func(s *connector.Spec) { s.TableInclude = []string{"public.seen"} }, fault: "no table is selected"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tables, err := run(t, database(t, 18, test.before...), spec(test.change))
			switch {
			case test.fault == "" && err != nil:
				t.Fatal(err)
			case test.fault != "" && (err == nil || !strings.Contains(err.Error(), test.fault)):
				t.Fatalf("got %v, want %q", err, test.fault)
			}
			if diff := cmp.Diff(test.want, tables); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestTogether: instances that start at the same moment do not end each other.
func TestTogether(t *testing.T) {
	t.Parallel()
	dsn := database(t, 18)
	faults := make(chan error)
	const instances = 8
	for range instances {
		go func() {
			_, err := run(t, dsn, spec(nil))
			faults <- err
		}()
	}
	for range instances {
		if err := testkit.Receive(t, "an instance", faults); err != nil && !slot.IsPassing(err) {
			t.Error(err)
		}
	}
	if got := inCatalog(t, dsn); got != "out +insert +update" {
		t.Error(got)
	}
}

// TestSlotBeforePublication: the server would not find a publication that is made
// now in the WAL that the slot holds.
func TestSlotBeforePublication(t *testing.T) {
	t.Parallel()
	name := testkit.Unique("start")
	dsn := database(t, 18, "select pg_create_logical_replication_slot('"+name+"', 'pgoutput')")
	_, err := run(t, dsn, spec(nil), func(o *Options) { o.Slot = name })
	if err == nil || !strings.Contains(err.Error(), "made now, it would not be there for the WAL that the slot holds") {
		t.Error(err)
	}
	if got := inCatalog(t, dsn); got != "none" {
		t.Errorf("the publication was made: %s", got)
	}
}

// TestNoRight: who may not make the publication is told the statement.
func TestNoRight(t *testing.T) {
	t.Parallel()
	dsn := database(t, 18)
	role := testkit.Unique("weak")
	testkit.Exec(t, dsn, "create role "+role+" login replication")
	t.Cleanup(func() {
		conn, err := pgx.Connect(context.Background(), dsn)
		if err == nil {
			_, err = conn.Exec(context.Background(), "drop role "+role)
			_ = conn.Close(context.Background())
		}
		if err != nil {
			t.Error(err)
		}
	})
	config, err := pg.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	config.User = role
	conn, err := pg.Connect(t.Context(), config, "walpost/test")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	_, err = Run(t.Context(), conn, Options{Spec: spec(nil), Slot: "none", Log: zap.NewNop()})
	e, ok := errors.AsType[*slot.Error](err)
	if !ok || e.Kind != slot.ErrDenied || !strings.HasSuffix(e.Hint(), `run: create publication "p" for table "public"."out" with (publish = 'insert, update')`) {
		t.Errorf("got %v", err)
	}
}
