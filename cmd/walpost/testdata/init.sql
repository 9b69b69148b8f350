-- What walpost needs. Run it in the database of the outbox, as the owner of
-- its tables, who also needs the right to create in the database.
-- wal_level must be logical: alter system set wal_level = logical, and restart.

begin;

create schema walpost;
create function walpost.append_only() returns trigger language plpgsql as $$
begin
  raise exception '%.% is append-only: % is refused', tg_table_schema, tg_table_name, lower(tg_op)
    using errcode = 'restrict_violation', hint = 'An event is a fact: write another one.';
end $$;

create table "public"."outbox_events" (
  seq               bigint generated always as identity,
  event_id          uuid primary key,
  aggregate_type    text not null,
  aggregate_id      text not null,
  aggregate_version bigint,
  event_type        text not null,
  schema_version    integer not null default 1,
  payload           json not null,
  occurred_at       timestamptz not null,
  created_at        timestamptz not null default now(),
  tenant_id         text,
  traceparent       text,
  tracestate        text,
  headers           jsonb,
  check (length(aggregate_type) between 1 and 200),
  check (length(aggregate_id) between 1 and 1024)
);
create index on "public"."outbox_events" using brin (created_at);
create trigger walpost_append_only before update on "public"."outbox_events" for each row execute function walpost.append_only();
create trigger walpost_append_only_truncate before truncate on "public"."outbox_events" for each statement execute function walpost.append_only();
alter table "public"."outbox_events" enable always trigger walpost_append_only;
alter table "public"."outbox_events" enable always trigger walpost_append_only_truncate;

create table "My-App"."Out.Box" (
  seq               bigint generated always as identity,
  event_id          uuid primary key,
  aggregate_type    text not null,
  aggregate_id      text not null,
  aggregate_version bigint,
  event_type        text not null,
  schema_version    integer not null default 1,
  payload           json not null,
  occurred_at       timestamptz not null,
  created_at        timestamptz not null default now(),
  tenant_id         text,
  traceparent       text,
  tracestate        text,
  headers           jsonb,
  check (length(aggregate_type) between 1 and 200),
  check (length(aggregate_id) between 1 and 1024)
);
create index on "My-App"."Out.Box" using brin (created_at);
create trigger walpost_append_only before update on "My-App"."Out.Box" for each row execute function walpost.append_only();
create trigger walpost_append_only_truncate before truncate on "My-App"."Out.Box" for each statement execute function walpost.append_only();
alter table "My-App"."Out.Box" enable always trigger walpost_append_only;
alter table "My-App"."Out.Box" enable always trigger walpost_append_only_truncate;

create publication "Pub-1" for table "public"."outbox_events", "My-App"."Out.Box" with (publish = 'insert', publish_via_partition_root = true);

-- What a relay leaves behind, so that its successor sends nothing twice.
create table walpost.checkpoint (
  slot              text primary key,
  system_identifier text not null,
  timeline          integer not null,
  lsn               pg_lsn not null,
  kafka_cluster     text not null,
  updated_at        timestamptz not null default now(),
  owner             text not null default '',
  epoch             bigint not null default 0
) with (fillfactor = 50);
create table walpost.checkpoint_offset (
  slot         text not null,
  topic        text not null,
  partition    integer not null,
  log_offset   bigint not null,
  primary key (slot, topic, partition)
) with (fillfactor = 50);

commit;

-- The slot comes after the publication, in a transaction of its own, by a role
-- with REPLICATION. It waits for the transactions that are open, and keeps WAL
-- from here on.
-- Before PostgreSQL 17 leave out the last argument, failover.
select lsn::text from pg_create_logical_replication_slot('orders', 'pgoutput', temporary => false, twophase => false, failover => true);

-- Roles. The relay needs no right on the tables:
--   create role walpost_relay login replication connection limit 4 password '...';
--   grant connect on database ... to walpost_relay;
--   pg_hba.conf: hostssl <database> walpost_relay <address>/32 scram-sha-256
-- REPLICATION reads every publication and drops any slot of the server: guard
-- this password like those of its databases.
--   grant usage on schema walpost to walpost_relay;
--   grant select, insert, update, delete on walpost.checkpoint, walpost.checkpoint_offset to walpost_relay;
-- Who the slot's holder is, and the oldest transaction, is shown with:
--   grant pg_read_all_stats to walpost_relay;
-- The application inserts, and nothing else:
--   grant insert on "public"."outbox_events" to ...;
--   grant insert on "My-App"."Out.Box" to ...;
