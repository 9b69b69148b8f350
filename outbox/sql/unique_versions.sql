create unique index {versions} on {table} (aggregate_type, aggregate_id, aggregate_version);
