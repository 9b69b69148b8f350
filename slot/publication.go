package slot

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/walpost/walpost/internal/pg"
)

// Publication is what the catalogue says of a publication.
type Publication struct {
	Name      string
	OID       uint32
	Insert    bool
	Update    bool
	Delete    bool
	Truncate  bool
	ViaRoot   bool // rows of partitions carry the topmost table's name
	AllTables bool
}

// Operations lists what is published, as the publish parameter is written.
func (p *Publication) Operations() string {
	var list []string
	for _, op := range []struct {
		on   bool
		name string
	}{{p.Insert, "insert"}, {p.Update, "update"}, {p.Delete, "delete"}, {p.Truncate, "truncate"}} {
		if op.on {
			list = append(list, op.name)
		}
	}
	return strings.Join(list, ", ")
}

// PublishedTable is an outbox table in its publication.
type PublishedTable struct {
	Table
	OID uint32
	// Membership is the OID of the entry that puts the table into the
	// publication; zero for a publication of all tables or of a schema.
	Membership  uint32
	Partitioned bool
	// Columns is the publication's column list; nil when all are published.
	Columns []string
}

// Published is a publication together with the outbox tables that are in it.
type Published struct {
	Publication
	Tables []PublishedTable
}

const publicationSQL = `
select oid, pubinsert, pubupdate, pubdelete, pubtruncate, pubviaroot, puballtables
  from pg_publication where pubname = $1`

// A table is published through itself, through a table that it is a partition
// of, or through its schema (from 15 on). What is said of its own partitions
// counts as well: a filter there would hide rows.
const membershipSQL14 = `
select oid, prrelid, prrelid not in (select relid from pg_partition_tree($2::bigint::regclass) where level > 0), false, null::text[]
  from pg_publication_rel
 where prpubid = $1::bigint::oid
   and prrelid in (select $2::bigint::oid
                   union select relid from pg_partition_ancestors($2::bigint::regclass)
                   union select relid from pg_partition_tree($2::bigint::regclass))
 order by oid`

const membershipSQL15 = `
select oid, prrelid, prrelid not in (select relid from pg_partition_tree($2::bigint::regclass) where level > 0), prqual is not null,
       case when prattrs is not null then (select array_agg(attname::text order by attnum) from pg_attribute
          where attrelid = prrelid and attnum = any (prattrs::int2[])) end
  from pg_publication_rel
 where prpubid = $1::bigint::oid
   and prrelid in (select $2::bigint::oid
                   union select relid from pg_partition_ancestors($2::bigint::regclass)
                   union select relid from pg_partition_tree($2::bigint::regclass))
 order by oid`

const schemaMembershipSQL = `
select exists (select from pg_publication_namespace
 where pnpubid = $1::bigint::oid
   and pnnspid in (select relnamespace from pg_class where oid = $2::bigint::oid
                   union select c.relnamespace from pg_partition_ancestors($2::bigint::regclass) a join pg_class c on c.oid = a.relid))`

const versionSQL = `select current_setting('server_version_num')::int`

// FindPublication looks a publication up; nil means that there is none.
func FindPublication(ctx context.Context, conn *pgx.Conn, name string) (*Publication, error) {
	p := &Publication{Name: name}
	err := conn.QueryRow(ctx, publicationSQL, name).Scan(&p.OID, &p.Insert, &p.Update, &p.Delete, &p.Truncate, &p.ViaRoot, &p.AllTables)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, describe("look up publication "+quote(name), err)
	}
	return p, nil
}

// CheckPublication says whether the publication publishes every inserted row of
// the tables. An *Error is a definite answer; other errors mean that there was
// none.
func CheckPublication(ctx context.Context, conn *pgx.Conn, name string, tables []Table) (*Published, error) {
	return checkPublication(ctx, conn, name, tables, nil)
}

// checkPublication is CheckPublication, and says last of each table whether it
// fits.
func checkPublication(ctx context.Context, conn *pgx.Conn, name string, tables []Table, fits func(*Definition) error) (*Published, error) {
	p, err := FindPublication(ctx, conn, name)
	if err != nil {
		return nil, err
	}
	if p == nil {
		return nil, &Error{
			Kind: ErrPublication,
			Text: "publication " + quote(name) + " does not exist",
			Way: `if it never did, run "walpost init"; if it was dropped, rows written since then are not in the stream: ` +
				`find them in the table before making publication and slot anew`,
		}
	}
	if !p.Insert {
		return nil, &Error{
			Kind: ErrPublication,
			Text: "publication " + quote(name) + " does not publish inserts",
			Way:  "alter publication " + pg.QuoteIdent(name) + " set (publish = 'insert'); rows inserted before that are not in the stream",
		}
	}
	var version int
	if err := conn.QueryRow(ctx, versionSQL).Scan(&version); err != nil {
		return nil, describe("look at the server", err)
	}
	published := &Published{Publication: *p}
	for _, t := range tables {
		pt, err := checkTable(ctx, conn, p, t, version, fits)
		if err != nil {
			return nil, err
		}
		published.Tables = append(published.Tables, *pt)
	}
	return published, nil
}

func checkTable(ctx context.Context, conn *pgx.Conn, p *Publication, t Table, version int, fits func(*Definition) error) (*PublishedTable, error) {
	def, err := FindTable(ctx, conn, t)
	if err != nil {
		return nil, err
	}
	if def == nil {
		return nil, missingTable(t)
	}
	if err := def.Check(nil); err != nil {
		return nil, err
	}
	pt := &PublishedTable{Table: t, OID: def.OID, Partitioned: def.Partitioned}
	query := membershipSQL14
	if version >= 150000 {
		query = membershipSQL15
	}
	rows, err := conn.Query(ctx, query, int64(p.OID), int64(def.OID))
	if err != nil {
		return nil, describe("look up publication "+quote(p.Name), err)
	}
	type member struct {
		OID, Rel  uint32
		OfTable   bool // of the table or of one above it, not of a partition below
		HasFilter bool
		Columns   []string
	}
	members, err := pgx.CollectRows(rows, pgx.RowToStructByPos[member])
	if err != nil {
		return nil, describe("look up publication "+quote(p.Name), err)
	}
	in := p.AllTables
	for _, m := range members {
		if m.HasFilter {
			return nil, &Error{
				Kind: ErrPublication,
				Text: fmt.Sprintf("publication %q has a row filter on %s: events that it hides would be lost", p.Name, t),
				Way:  "take it off: alter publication " + pg.QuoteIdent(p.Name) + " set table " + t.quoted(),
			}
		}
		if m.OfTable && pt.Membership == 0 {
			in, pt.Membership = true, m.OID
		}
		if m.Columns != nil && pt.Columns == nil {
			pt.Columns = m.Columns
		}
	}
	if !in && version >= 150000 {
		if err := conn.QueryRow(ctx, schemaMembershipSQL, int64(p.OID), int64(def.OID)).Scan(&in); err != nil {
			return nil, describe("look up publication "+quote(p.Name), err)
		}
	}
	if !in {
		return nil, &Error{
			Kind: ErrPublication,
			Text: fmt.Sprintf("table %s is not in publication %q", t, p.Name),
			Way: "alter publication " + pg.QuoteIdent(p.Name) + " add table " + t.quoted() +
				"; rows inserted before that are not in the stream",
		}
	}
	return pt, def.Check(fits)
}

// The view lists what is published in the end, all tables and schemas included.
const otherTablesSQL = `
select p.schemaname, p.tablename
  from pg_publication_tables p
  join pg_namespace n on n.nspname = p.schemaname
  join pg_class c on c.relnamespace = n.oid and c.relname = p.tablename
 where p.pubname = $1
   and not exists (select from unnest($2::bigint[]) as ours (oid)
                    where c.oid = ours.oid::oid or ours.oid::oid in (select relid::oid from pg_partition_ancestors(c.oid::regclass)))
 order by 1, 2 limit 10`

// OtherTables lists up to ten tables in the publication that are none of the
// outbox tables.
func OtherTables(ctx context.Context, conn *pgx.Conn, p *Published) ([]Table, error) {
	oids := make([]int64, len(p.Tables))
	for i, t := range p.Tables {
		oids[i] = int64(t.OID)
	}
	rows, err := conn.Query(ctx, otherTablesSQL, p.Name, oids)
	if err != nil {
		return nil, describe("look up publication "+quote(p.Name), err)
	}
	tables, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Table])
	if err != nil {
		return nil, describe("look up publication "+quote(p.Name), err)
	}
	return tables, nil
}

// Changed says what became different since p in a way that lost rows or may
// have: PostgreSQL skips the rows of that time without a word. A new partition
// is no change.
func (p *Published) Changed(now *Published) error {
	const way = "rows inserted in between are not in the stream: find them in the table, then start walpost again, which accepts what is there now"
	changed := func(kind error, format string, args ...any) error {
		return &Error{Kind: kind, Text: fmt.Sprintf(format, args...), Way: way}
	}
	if now.OID != p.OID {
		return changed(ErrPublication, "publication %q was dropped and made anew", p.Name)
	}
	if now.Insert != p.Insert {
		return changed(ErrPublication, "publication %q now publishes %s", p.Name, now.Operations())
	}
	if now.ViaRoot != p.ViaRoot {
		return changed(ErrPublication, "publish_via_partition_root of publication %q is now %v", p.Name, now.ViaRoot)
	}
	for _, was := range p.Tables {
		i := slices.IndexFunc(now.Tables, func(t PublishedTable) bool { return t.Table == was.Table })
		if i < 0 {
			return changed(ErrPublication, "table %s left publication %q", was.Table, p.Name)
		}
		is := now.Tables[i]
		if is.OID != was.OID {
			return changed(ErrTable, "table %s was dropped and made anew", was.Table)
		}
		if is.Membership != was.Membership {
			return changed(ErrPublication, "table %s was taken out of publication %q and put back", was.Table, p.Name)
		}
	}
	return nil
}
