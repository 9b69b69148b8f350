package slot

import (
	"context"
	"encoding/binary"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/walpost/walpost/internal/pg"
)

// FirstUnconfirmed gives the commit time of the first transaction that the slot
// will send, without moving the slot. It is zero when there is none yet. The
// slot must not be in use: then the error is an ErrInUse. On a slot that has much
// WAL before it, this takes as long as reading that.
func FirstUnconfirmed(ctx context.Context, conn *pgx.Conn, name, publication string) (time.Time, error) {
	doing := "look at what slot " + quote(name) + " will send"
	// upto_nchanges is looked at after a commit, so that the server decodes the
	// first transaction to its end, and spools it. limit keeps all but Begin there.
	rows, err := conn.Query(ctx, `select data from pg_logical_slot_peek_binary_changes($1, null, 1, 'proto_version', '1', 'publication_names', $2) limit 1`,
		name, pg.QuoteIdent(publication))
	if err != nil {
		return time.Time{}, peekFailed(name, doing, err)
	}
	data, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[[]byte])
	if errors.Is(err, pgx.ErrNoRows) {
		return time.Time{}, nil
	}
	if err != nil {
		return time.Time{}, peekFailed(name, doing, err)
	}
	// Begin: 'B', the commit LSN, the commit time in microseconds since 2000, the
	// xid (protocol-logicalrep-message-formats).
	if len(data) < 17 || data[0] != 'B' {
		return time.Time{}, nil
	}
	micros := int64(binary.BigEndian.Uint64(data[9:17]))
	return time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(micros) * time.Microsecond), nil
}

func peekFailed(name, doing string, err error) error {
	if pg.SQLState(err) == "55006" { // object_in_use
		return &Error{Kind: ErrInUse, Text: "slot " + quote(name) + " is in use", SQLState: "55006", Err: err,
			Way: "stop whoever streams from it"}
	}
	return describe(doing, err)
}
