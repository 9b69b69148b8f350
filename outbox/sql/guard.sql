create schema walpost;

create function walpost.append_only() returns trigger language plpgsql as $$
begin
  raise exception '%.% is append-only: % is refused', tg_table_schema, tg_table_name, lower(tg_op)
    using errcode = 'restrict_violation', hint = 'An event is a fact: write another one.';
end $$;
