create table walpost.aggregate_versions (
  aggregate_type text,
  aggregate_id   text,
  version        bigint not null,
  primary key (aggregate_type, aggregate_id)
) with (fillfactor = 70);
