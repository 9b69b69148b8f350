create table {table} (
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
);

create index on {table} using brin (created_at);

create trigger walpost_append_only before update on {table} for each row execute function walpost.append_only();

create trigger walpost_append_only_truncate before truncate on {table} for each statement execute function walpost.append_only();

alter table {table} enable always trigger walpost_append_only;

alter table {table} enable always trigger walpost_append_only_truncate;
