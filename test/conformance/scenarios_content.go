package main

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// contentScenarios are about what of a transaction is an event.
func contentScenarios() []scenario {
	return []scenario{
		{
			name: "statements", free: []string{"a", "b"},
			what: "inserts of many rows, and prepared transactions, committed and rolled back, around others",
			run:  statements,
		},
		{
			name: "update-delete", free: []string{"a"},
			what: "rows that are updated and deleted right after their insert, and a truncate: each insert is one event",
			run:  updateDelete,
		},
	}
}

const manySQL = `insert into ` + table + ` select id::uuid, $2, 'k' || (((n - 1) / 2) % 3), 'Made', '{}' from unnest($1::text[]) with ordinality u (id, n)`

// many writes events as one statement, over three keys; neighbours share one.
func many(ctx context.Context, db *pgx.Conn, events []event) error {
	ids := make([]string, len(events))
	for i := range events {
		ids[i] = events[i].id
		events[i].key = fmt.Sprintf("k%d", i/2%3)
	}
	_, err := db.Exec(ctx, manySQL, ids, events[0].kind)
	return err
}

func statements(ctx context.Context, r *rig) error {
	first, kept, undone, between := r.rows("a", 300, 3), r.rows("b", 200, 3), r.rows("b", 200, 3), r.rows("a", 50, 3)
	name := uuid.NewString()
	db, err := r.connect(ctx)
	if err != nil {
		return err
	}
	defer db.Close(ctx)
	do := func(sql string) func() error {
		return func() error { _, err := db.Exec(ctx, sql); return err }
	}
	return steps(
		func() error { return r.start(ctx) },
		func() error { return many(ctx, db, first) },
		func() error { _, err := r.wrote(ctx, db, first); return err },
		do(`begin`),
		func() error { return many(ctx, db, kept) },
		do(`prepare transaction '`+name+`-kept'`),
		do(`begin`),
		func() error { return many(ctx, db, undone) },
		do(`prepare transaction '`+name+`-undone'`),
		func() error { return many(ctx, db, between) },
		func() error { _, err := r.wrote(ctx, db, between); return err },
		do(`rollback prepared '`+name+`-undone'`),
		do(`commit prepared '`+name+`-kept'`),
		func() error { _, err := r.wrote(ctx, db, kept); return err },
	)
}

// updateDelete has a publication of all operations, as Debezium makes them.
func updateDelete(ctx context.Context, r *rig) error {
	gone := func(tx pgx.Tx) error {
		for _, sql := range []string{
			`update ` + table + ` set payload = '{"n": 9}'`,
			`update ` + table + ` set id = gen_random_uuid() where aggregateid = 'k0'`,
			`delete from ` + table,
		} {
			if _, err := tx.Exec(ctx, sql); err != nil {
				return err
			}
		}
		return nil
	}
	return steps(
		func() error {
			return r.exec(ctx, `alter publication `+r.slot+` set (publish = 'insert, update, delete, truncate')`)
		},
		func() error { return r.start(ctx) },
		func() error { _, err := r.write(ctx, r.rows("a", 30, 3), gone); return err },
		func() error { _, err := r.writeEach(ctx, r.rows("a", 10, 3)); return err },
		func() error { _, err := r.commit(ctx, nil, gone); return err },
		func() error { _, err := r.writeEach(ctx, r.rows("a", 10, 3)); return err },
		func() error { return r.exec(ctx, `truncate `+table) },
		func() error { _, err := r.writeEach(ctx, r.rows("a", 10, 3)); return err },
	)
}
