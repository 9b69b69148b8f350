package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/walpost/walpost/internal/pg"
)

// read receives inserts and looks at nothing but their first byte: about what
// pg_recvlogical does, for machines that have none.
func read(ctx context.Context, opt options, count *counter) error {
	conn, err := pg.ConnectReplication(ctx, pg.ReplicationConfig(opt.conn, "walpost/"+opt.slot+"/reader"))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	err = pglogrepl.StartReplication(ctx, conn, pg.QuoteIdent(opt.slot), 0, pglogrepl.StartReplicationOptions{
		PluginArgs: []string{"proto_version '1'", "publication_names " + pg.QuoteLiteral(pg.QuoteIdent(opt.publication))},
	})
	if err != nil {
		return fmt.Errorf("start replication: %w", err)
	}
	// A context of a read is dear; closing the connection ends it as well.
	stop := context.AfterFunc(ctx, func() { _ = conn.Conn().Close() })
	defer stop()
	for reported := time.Now(); ; {
		message, err := conn.ReceiveMessage(context.Background())
		if err != nil {
			if ctx.Err() != nil {
				return count.err()
			}
			return err
		}
		data, ok := message.(*pgproto3.CopyData)
		if !ok {
			return fmt.Errorf("unexpected %T", message)
		}
		const header = 25 // of XLogData
		switch {
		case len(data.Data) > header && data.Data[0] == 'w':
			if data.Data[header] == 'I' {
				count.event()
			}
		case len(data.Data) > 0 && data.Data[0] == 'k':
			// The walsender must not think that nobody is there. The position
			// never moves: the slot is used once.
			if time.Since(reported) > 5*time.Second {
				reported = time.Now()
				err := pglogrepl.SendStandbyStatusUpdate(ctx, conn, pglogrepl.StandbyStatusUpdate{WALWritePosition: 1})
				if err != nil && ctx.Err() == nil {
					return err
				}
			}
		default:
			return errors.New("unknown replication message")
		}
	}
}
