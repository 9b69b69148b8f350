package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

const (
	insertSQL = `insert into ` + table + ` values ($1, $2, $3, 'Made', jsonb_build_object('n', $4::int))`
	walEndSQL = `select (pg_current_wal_insert_lsn() - '0/0')::int8`
)

// insert writes events in a transaction that is open.
func insert(ctx context.Context, tx pgx.Tx, events ...event) error {
	batch := &pgx.Batch{}
	for i, e := range events {
		batch.Queue(insertSQL, e.id, e.kind, e.key, i)
	}
	return tx.SendBatch(ctx, batch).Close()
}

// write commits events in one transaction; do may do more in it.
func (r *rig) write(ctx context.Context, events []event, do ...func(pgx.Tx) error) ([]event, error) {
	return r.commit(ctx, events, func(tx pgx.Tx) error {
		errs := []error{insert(ctx, tx, events...)}
		for _, f := range do {
			errs = append(errs, f(tx))
		}
		return errors.Join(errs...)
	})
}

// commit runs a transaction that writes these events.
func (r *rig) commit(ctx context.Context, events []event, do func(pgx.Tx) error) ([]event, error) {
	db, err := r.connect(ctx)
	if err != nil {
		return nil, err
	}
	defer db.Close(ctx)
	if err := pgx.BeginFunc(ctx, db, do); err != nil {
		return nil, fmt.Errorf("write events: %w", err)
	}
	return r.wrote(ctx, db, events)
}

// wrote notes events that were just committed.
func (r *rig) wrote(ctx context.Context, db *pgx.Conn, events []event) ([]event, error) {
	var after int64
	if err := db.QueryRow(ctx, walEndSQL).Scan(&after); err != nil {
		return nil, err
	}
	return r.ledger.add(uint64(after), events...), nil
}

// writeEach commits each event in a transaction of its own.
func (r *rig) writeEach(ctx context.Context, events []event) ([]event, error) {
	var all []event
	for _, e := range events {
		wrote, err := r.write(ctx, []event{e})
		if err != nil {
			return nil, err
		}
		all = append(all, wrote...)
	}
	return all, nil
}

// foreign writes about that many kilobytes to a table that nobody publishes.
func (r *rig) foreign(ctx context.Context, kilobytes int) error {
	return r.exec(ctx, fmt.Sprintf(`insert into noise select repeat('x', 950) from generate_series(1, %d)`, kilobytes))
}
