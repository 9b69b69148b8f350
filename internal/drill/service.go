package drill

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/jackc/pgx/v5"

	"github.com/walpost/walpost/internal/pg"
	"github.com/walpost/walpost/outbox"
)

const aggregates = 5

// errUndo rolls a transaction back on purpose.
var errUndo = errors.New("rolled back on purpose")

// write commits n events, each in a transaction of its own, and between them
// rolls back n others, whose ids go to undone before they are written.
func write(ctx context.Context, conn *pgx.Conn, schema string, n int, undone func(id string) error) error {
	w, err := outbox.NewWriter(outbox.WriterOptions{Table: schema + ".outbox_events", Payload: "json", RequireVersion: true})
	if err != nil {
		return err
	}
	next := "insert into " + pg.QuoteQualified(schema, "aggregates") + " as a values ($1, 1) on conflict (id) do update set version = a.version + 1 returning version"
	one := func(i int, commit bool) error {
		id := fmt.Sprint("a", i%aggregates)
		err := outbox.RunTx(ctx, conn, w, func(tx pgx.Tx, events *outbox.Buffer) error {
			var version int64
			if err := tx.QueryRow(ctx, next, id).Scan(&version); err != nil {
				return err
			}
			e := &outbox.Event{AggregateType: "drill", AggregateID: id, Version: version, Type: "drilled", Payload: json.RawMessage(fmt.Sprintf(`{"n":%d}`, i))}
			if commit {
				events.Add(e)
				return nil
			}
			if err := w.Write(ctx, tx, e); err != nil {
				return err
			}
			if err := undone(e.ID.String()); err != nil {
				return err
			}
			return errUndo
		})
		if errors.Is(err, errUndo) {
			return nil
		}
		return err
	}
	for i := range n {
		if undone != nil {
			if err := one(i, false); err != nil {
				return fmt.Errorf("roll back an event: %w", err)
			}
		}
		if err := one(i, true); err != nil {
			return fmt.Errorf("commit an event: %w", err)
		}
	}
	return nil
}

// Service is the whole life of the service child: it writes its events, prints
// the ids of those it rolled back, and kills itself right after the last commit.
func Service(ctx context.Context, cfg *pgx.ConnConfig, spec Spec, out io.Writer) error {
	conn, err := pg.Connect(ctx, cfg, application)
	if err != nil {
		return err
	}
	if err := write(ctx, conn, spec.Name, spec.Events, func(id string) error {
		_, err := fmt.Fprintln(out, id)
		return err
	}); err != nil {
		return err
	}
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		return err
	}
	if err := self.Kill(); err != nil {
		return err
	}
	select {} // the signal is on its way
}
