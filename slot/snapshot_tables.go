package slot

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/walpost/walpost/internal/pg"
)

// passes says of a wait for open transactions that was given up that it can be
// begun again: they end some time.
func passes(err error) error {
	if e, ok := errors.AsType[*Error](err); ok && (e.SQLState == "55P03" || e.SQLState == "57014") {
		e.Kind = ErrInUse
	}
	return err
}

// settings lets both sessions last as long as it takes, whatever role and
// database are set to, and lets the server notice when we are gone: it would
// keep slot and lock for two hours.
func (s *Snapshot) settings() string {
	statements := "set idle_session_timeout = 0; set idle_in_transaction_session_timeout = 0; set row_security = off; " +
		"set synchronize_seqscans = off; set max_parallel_workers_per_gather = 0; " + // they mix the order up
		"set tcp_keepalives_idle = 15; set tcp_keepalives_interval = 5; set tcp_keepalives_count = 3"
	if s.version >= 170000 {
		statements += "; set transaction_timeout = 0"
	}
	return statements
}

// denied says which right is lacking.
func (s *Snapshot) denied(err error) error {
	e, ok := errors.AsType[*Error](err)
	if !ok || e.Kind != ErrDenied {
		return err
	}
	names := make([]string, len(s.opt.Tables))
	for i, def := range s.opt.Tables {
		names[i] = def.quoted()
	}
	role := pg.QuoteIdent(s.conn.Config().User)
	e.Way = "grant select on " + strings.Join(names, ", ") + " to " + role
	if strings.Contains(err.Error(), "row-level security") {
		e.Way = "the snapshot must see all rows: alter role " + role + " bypassrls, or let the table's owner relay"
	}
	return e
}

const filesSQL = `
select coalesce(string_agg(c.oid || '/' || coalesce(pg_relation_filenode(c.oid), 0), ' ' order by c.oid), '')
  from pg_class c
 where c.oid = any ($1::bigint[]::oid[])
    or c.oid in (select p.relid from unnest($1::bigint[]::oid[]) as t (oid) cross join lateral pg_partition_tree(t.oid::regclass) p)`

// files tells in which files the tables are now. Some are left out that are made
// or dropped meanwhile: the comparison then fails, and is made again.
func (s *Snapshot) files(ctx context.Context) (files string, err error) {
	oids := make([]int64, len(s.opt.Tables))
	for i, def := range s.opt.Tables {
		oids[i] = int64(def.OID)
	}
	if err := s.conn.QueryRow(ctx, filesSQL, oids).Scan(&files); err != nil {
		return "", describe("look at the tables", err)
	}
	return files, nil
}

// checkCapacity says whether the temporary slot, and the permanent one, can be
// made: to find that out in the end would be late.
func (s *Snapshot) checkCapacity(ctx context.Context) error {
	if s.opt.Existing || s.opt.NoSlot {
		return CheckCapacity(ctx, s.conn)
	}
	var used, limit int
	if err := s.conn.QueryRow(ctx, capacitySQL).Scan(&used, &limit); err != nil {
		return describe("count slots", err)
	}
	if used+2 <= limit {
		return nil
	}
	e := noFreeSlot(used, limit, nil)
	e.Text = fmt.Sprintf("a snapshot takes two free replication slots, one of them for the time being: %d of %d are used (max_replication_slots)", used, limit)
	return e
}

// The first of: a column that a sequence fills, the primary key.
const orderSQL = `
with filled as (
  select array[a.attname::text] as names
    from pg_attribute a left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
   where a.attrelid = $1::bigint::oid and a.attnum > 0 and not a.attisdropped
     and (a.attidentity <> '' or a.attgenerated = '' and pg_get_expr(d.adbin, d.adrelid) like 'nextval(%')
   order by a.attnum limit 1),
key as (
  select array_agg(a.attname::text order by k.place) as names, bool_or(k.place = 1 and a.atttypid = 'uuid'::regtype) as random
    from pg_index i cross join lateral unnest(i.indkey::int2[]) with ordinality as k (attnum, place)
    join pg_attribute a on a.attrelid = i.indrelid and a.attnum = k.attnum
   where i.indrelid = $1::bigint::oid and i.indisprimary and k.place <= i.indnkeyatts)
select coalesce((select names from filled), (select names from key where not random), '{}')`

func selectRows(def *Definition, key []string) string {
	columns := make([]string, len(def.Columns))
	for i, c := range def.Columns {
		columns[i] = pg.QuoteIdent(c.Name)
	}
	statement := "select " + strings.Join(columns, ", ") + " from " + def.from()
	if len(key) == 0 {
		return statement
	}
	for i := range key {
		key[i] = pg.QuoteIdent(key[i])
	}
	return statement + " order by " + strings.Join(key, ", ")
}

// from names the table as a query has to: what inherits from it is another table.
func (d *Definition) from() string {
	if d.Partitioned {
		return d.quoted()
	}
	return "only " + d.quoted()
}
