package catalog

const oidQuery = `
select c.oid
  from pg_catalog.pg_class c
  join pg_catalog.pg_namespace n on n.oid = c.relnamespace
 where n.nspname = $1 and c.relname = $2 and c.relkind in ('r', 'p')`

// columnQuery: a column of a domain that is NOT NULL counts as NOT NULL. Without
// a primary key, the first unique index of plain columns by name stands in, as in Debezium.
const columnQuery = `
with key as (
  select i.indkey[0:i.indnkeyatts - 1] as columns
    from pg_catalog.pg_index i
    join pg_catalog.pg_class c on c.oid = i.indexrelid
   where i.indrelid = $1 and i.indisunique and i.indexprs is null
   order by i.indisprimary desc, c.relname
   limit 1
)
select a.attname::text, a.atttypid, a.atttypmod,
       a.attnotnull or (t.typtype = 'd' and t.typnotnull),
       coalesce((select array_position(key.columns::int2[], a.attnum) from key), 0),
       d.oid is not null,
       coalesce(pg_catalog.pg_get_expr(d.adbin, d.adrelid), ''),
       a.attgenerated::text,
       coalesce(pg_catalog.col_description(a.attrelid, a.attnum), '')
  from pg_catalog.pg_attribute a
  join pg_catalog.pg_type t on t.oid = a.atttypid
  left join pg_catalog.pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
 where a.attrelid = $1 and a.attnum > 0 and not a.attisdropped
 order by a.attnum`

// typeQuery walks down to what domains are based on and what arrays hold. Only
// types of category A are arrays: point and name have elements as well.
const typeQuery = `
with recursive walk(oid, base) as (
  select t.oid, case when t.typtype = 'd' then t.typbasetype when t.typcategory = 'A' then t.typelem else 0 end
    from pg_catalog.pg_type t where t.oid = any($1::oid[])
  union
  select t.oid, case when t.typtype = 'd' then t.typbasetype when t.typcategory = 'A' then t.typelem else 0 end
    from walk join pg_catalog.pg_type t on t.oid = walk.base
)
select walk.oid, n.nspname::text, t.typname::text, t.typtype::text, t.typtypmod, walk.base,
       (select array_agg(e.enumlabel::text order by e.enumsortorder) from pg_catalog.pg_enum e where e.enumtypid = walk.oid)
  from walk
  join pg_catalog.pg_type t on t.oid = walk.oid
  join pg_catalog.pg_namespace n on n.oid = t.typnamespace`
