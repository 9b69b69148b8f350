package column_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5"

	"github.com/walpost/walpost/decoder"
	"github.com/walpost/walpost/internal/debezium/catalog"
	"github.com/walpost/walpost/internal/debezium/column"
	"github.com/walpost/walpost/internal/testkit"
)

const realTypes = `
create type mood as enum ('happy', 'sad', 'a,b');
create type pair as (a int, b text);
create domain d_text as text;
create domain d_num as numeric(10,2);
create domain d_int as int check (value <> 13);
create domain d_ts3 as timestamp(3);
create domain d_ints as int[];
create domain d_deep as d_num;
create domain d_var as varchar(5);
create domain d_bit as bit(4);
create type frange as range (subtype = float8);
create sequence s`

// possible drops the columns that a server cannot have.
func possible(t *testing.T, conn *pgx.Conn, major int, inputs []recordedColumn) []recordedColumn {
	t.Helper()
	have := map[string]bool{}
	for extension, types := range map[string][]string{
		"hstore": {"hstore"}, "ltree": {"ltree"}, "citext": {"citext"}, "isn": {"isbn"},
	} {
		_, err := conn.Exec(t.Context(), "create extension "+extension)
		for _, name := range types {
			have[name] = err == nil
		}
		if err != nil {
			t.Logf("without %s: %v", extension, err)
		}
	}
	return slices.DeleteFunc(inputs, func(in recordedColumn) bool {
		has, extension := have[strings.TrimSuffix(in.Type, "[]")]
		// A scale that is negative or beyond the precision, and "char" in octal,
		// are of PostgreSQL 15.
		return extension && !has || major < 15 && slices.Contains([]string{"numeric(5,-2)", "numeric(3,5)", `"char"`}, in.Type)
	})
}

// TestRealServer: what the catalog and pgoutput of each version say makes the
// schemas and values of Debezium.
func TestRealServer(t *testing.T) {
	t.Parallel()
	for _, major := range testkit.Majors(t) {
		t.Run(fmt.Sprint("types/", major), func(t *testing.T) {
			t.Parallel()
			realServer(t, major, "types", func(in recordedColumn) string { return in.Type })
		})
		t.Run(fmt.Sprint("defaults/", major), func(t *testing.T) {
			t.Parallel()
			realServer(t, major, "defaults", func(in recordedColumn) string {
				if in.Default == "" {
					return in.Type
				}
				return in.Type + " default (" + in.Default + ")"
			})
		})
	}
}

func realServer(t *testing.T, major int, set string, declare func(recordedColumn) string) {
	ctx := t.Context()
	conn := testkit.Connect(t, testkit.Postgres(t, major).NewDB(t))
	inputs := possible(t, conn, major, lines[recordedColumn](t, set+".jsonl"))
	exec(t, conn, realTypes)
	var declarations, names []string
	rows := make([][]string, 4)
	for _, in := range inputs {
		declarations = append(declarations, in.Info.Name+" "+declare(in))
		if set == "types" || in.Default != "" {
			names = append(names, in.Info.Name)
		}
		for i, value := range in.Values {
			rows[i] = append(rows[i], value)
		}
	}
	rows[3] = slices.Repeat([]string{"null"}, len(names))
	if set == "defaults" {
		rows = rows[3:]
	}
	exec(t, conn, "create table outboxevent ("+strings.Join(declarations, ",\n")+")")
	exec(t, conn, "create publication p for table outboxevent")
	exec(t, conn, "select pg_create_logical_replication_slot('"+testkit.Unique("column")+"', 'pgoutput')")
	for _, row := range rows {
		exec(t, conn, "insert into outboxevent ("+strings.Join(names, ", ")+") values ("+strings.Join(row, ", ")+")")
	}

	oid, infos, err := catalog.ByName(ctx, conn, "public", "outboxevent")
	if err != nil {
		t.Fatal(err)
	}
	relation, texts := streamed(t, conn)
	if relation.OID != oid || len(texts) != len(rows) || len(infos) != len(inputs) {
		t.Fatalf("relation %d with %d rows, catalog %d with %d columns; want the same relation, %d rows and %d columns",
			relation.OID, len(texts), oid, len(infos), len(rows), len(inputs))
	}
	recordings := map[string]recording{}
	for _, r := range lines[recording](t, set+".recorded.jsonl") {
		if r.Mode == "default" {
			recordings[r.Column] = r
		}
	}
	for i, in := range inputs {
		t.Run(in.Info.Name, func(t *testing.T) {
			info := infos[i]
			if diff := cmp.Diff(in.Info, info, cmp.Transformer("own", withoutOwnOIDs)); diff != "" {
				t.Errorf("catalog (-recorded +got):\n%s", diff)
			}
			if c := relation.Columns[i]; c.TypeOID != info.TypeOID || c.TypeMod != info.TypeMod || c.Name != info.Name {
				t.Errorf("relation has %+v, the catalog type %d and modifier %d", c, info.TypeOID, info.TypeMod)
			}
			var got []*string
			for r := range texts {
				got = append(got, texts[r][i])
			}
			if set == "types" {
				if diff := cmp.Diff(in.Texts, got); diff != "" {
					t.Errorf("text (-recorded +got):\n%s", diff)
				}
			}
			r := recordings[info.Name]
			r.check(t, info, got)
		})
	}
}

// withoutOwnOIDs: types that are not built in have OIDs by chance.
func withoutOwnOIDs(i column.Info) string {
	var print func(t *column.TypeInfo) string
	print = func(t *column.TypeInfo) string {
		if t == nil {
			return "-"
		}
		oid := t.OID
		if oid >= 16384 {
			oid = 0
		}
		return fmt.Sprintf("%d %s.%s %c %d %q (%s) [%s]", oid, t.Schema, t.Name, t.Kind, t.TypMod, t.Labels, print(t.Base), print(t.Elem))
	}
	return fmt.Sprintf("%s mod %d notnull %v key %v default %v %q generated %d %q: %s",
		i.Name, i.TypeMod, i.NotNull, i.Key, i.HasDefault, i.Default, i.Generated, i.Comment, print(&i.Type))
}

// streamed reads what pgoutput sends.
func streamed(t *testing.T, conn *pgx.Conn) (*decoder.Relation, [][]*string) {
	t.Helper()
	changes, err := conn.Query(t.Context(), `
select lsn::text, data
  from pg_replication_slots, pg_logical_slot_get_binary_changes(slot_name, null, null, 'proto_version', '1', 'publication_names', 'p')
 where database = current_database()`)
	if err != nil {
		t.Fatal(err)
	}
	var relation *decoder.Relation
	var rows [][]*string
	d := decoder.New()
	var lsn string
	var data []byte
	if _, err := pgx.ForEachRow(changes, []any{&lsn, &data}, func() error {
		at, err := pglogrepl.ParseLSN(lsn)
		if err != nil {
			return err
		}
		change, err := d.Decode(at, data)
		if err != nil {
			return err
		}
		if change == nil || change.Kind != decoder.KindInsert {
			return nil
		}
		relation = change.Relation
		var row []*string
		for _, v := range change.New {
			if v.Kind != decoder.Text {
				row = append(row, nil)
				continue
			}
			text := string(v.Data)
			row = append(row, &text)
		}
		rows = append(rows, row)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	// The slot would keep the database.
	exec(t, conn, "select pg_drop_replication_slot(slot_name) from pg_replication_slots where database = current_database()")
	return relation, rows
}

func exec(t *testing.T, conn *pgx.Conn, sql string) {
	t.Helper()
	if _, err := conn.PgConn().Exec(context.WithoutCancel(t.Context()), sql).ReadAll(); err != nil {
		t.Fatalf("%v in %.2000s", err, sql)
	}
}
