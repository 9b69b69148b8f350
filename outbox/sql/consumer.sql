create table {schema}processed_events (
  consumer     text,
  event_id     uuid,
  processed_at timestamptz not null default clock_timestamp(),
  primary key (consumer, event_id)
);

create index on {schema}processed_events using brin (processed_at);

create table {schema}consumer_positions (
  consumer       text,
  aggregate_type text,
  aggregate_id   text,
  version        bigint not null,
  updated_at     timestamptz not null default now(),
  primary key (consumer, aggregate_type, aggregate_id)
) with (fillfactor = 70);

create table {schema}parked_events (
  seq               bigint generated always as identity,
  consumer          text,
  event_id          uuid,
  aggregate_type    text not null,
  aggregate_id      text not null,
  aggregate_version bigint,
  event_type        text not null,
  schema_version    integer not null,
  occurred_at       timestamptz,
  tenant_id         text,
  traceparent       text,
  tracestate        text,
  topic             text not null,
  kafka_partition   integer not null,
  kafka_offset      bigint not null,
  record_time       timestamptz,
  key               bytea,
  value             bytea,
  headers           jsonb not null default '[]',
  reason            text not null check (reason in ('gap', 'failed', 'crash', 'held', 'too_old')),
  error             text not null default '',
  attempts          integer not null default 0,
  parked_at         timestamptz not null default now(),
  resolved_at       timestamptz,
  resolved_by       text,
  resolution        text,
  primary key (consumer, event_id)
);

create index on {schema}parked_events (consumer, aggregate_type, aggregate_id, aggregate_version, seq) where resolved_at is null;

create table {schema}consumer_floors (
  consumer text primary key,
  floor    timestamptz not null
);

create table {schema}consumer_starts (
  consumer     text,
  topic        text,
  partition    integer,
  start_offset bigint not null,
  log_offset   bigint not null,
  tries        integer not null,
  updated_at   timestamptz not null default now(),
  primary key (consumer, topic, partition)
) with (fillfactor = 50);
