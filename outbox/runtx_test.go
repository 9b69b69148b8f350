package outbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// Order of insertion is order of commits, although transactions get in each
// other's way, in every isolation level.
func TestRunTx(t *testing.T) {
	t.Parallel()
	for _, level := range []pgx.TxIsoLevel{pgx.ReadCommitted, pgx.RepeatableRead, pgx.Serializable} {
		t.Run(string(level), func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.pool.opts.IsoLevel = level
			w := b.writer(WriterOptions{RequireVersion: true})
			var group sync.WaitGroup
			for range 4 {
				group.Go(func() {
					for i := range 15 {
						e := &Event{AggregateType: "order", AggregateID: fmt.Sprint(i % 3), Type: "moved", Payload: json.RawMessage(`{}`)}
						for {
							err := RunTx(b.ctx, b.pool, w, func(tx pgx.Tx, buf *Buffer) (err error) {
								buf.Add(e) // written last all the same
								e.Version, err = NextVersions(b.ctx, tx, e.AggregateType, e.AggregateID, 1)
								return err
							})
							if err == nil {
								break
							}
							if !isConflict(err) {
								t.Error(err)
								return
							}
						}
					}
				})
			}
			group.Wait()
			b.expect("60 true", `select concat_ws(' ', count(*), bool_and(aggregate_version = n)::text)
from (select aggregate_version, row_number() over (partition by aggregate_id order by seq) as n from outbox_events) x`)
		})
	}
}

func TestRunTxGivesUp(t *testing.T) {
	t.Parallel()
	b := setup(t)
	w := b.writer(WriterOptions{})
	want := errors.New("no stock")
	err := RunTx(b.ctx, b.pool, w, func(tx pgx.Tx, buf *Buffer) error { buf.Add(event("a", 1)); return want })
	if !errors.Is(err, want) {
		t.Errorf("got %v", err)
	}
	err = RunTx(b.ctx, b.pool, w, func(tx pgx.Tx, buf *Buffer) error { buf.Add(event("", 1)); return nil })
	if !errors.Is(err, ErrInvalid) {
		t.Errorf("got %v", err)
	}
	b.expect("0", `select count(*)::text from outbox_events`)
}

func TestDeriveID(t *testing.T) {
	t.Parallel()
	at := time.UnixMilli(1770000000123)
	id := DeriveID(at, "order-1/paid")
	if got, want := id.String(), goldenDerived; got != want || id.Variant() != uuid.RFC4122 {
		t.Errorf("got %s, want %s", got, want)
	}
	if DeriveID(at.Add(time.Millisecond), "a").String() <= id.String() || DeriveID(at, "order-1/sent") == id {
		t.Error("neither in order nor by key")
	}
}
