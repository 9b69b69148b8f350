package setup

import (
	"strings"

	"github.com/walpost/walpost/checkpoint"
	"github.com/walpost/walpost/internal/pg"
	"github.com/walpost/walpost/outbox"
	"github.com/walpost/walpost/slot"
)

// newest stands for a server with everything that a statement can ask for.
const newest = 180000

// SQL is everything that Run would do in a database that has none of it, with
// the grants of the roles as comments.
func SQL(opt Options) (string, error) {
	if err := opt.check(); err != nil {
		return "", err
	}
	for _, t := range opt.Tables {
		if !opt.CreateTables {
			break
		}
		if err := checkCreated(opt, t); err != nil {
			return "", err
		}
	}
	var b strings.Builder
	line := func(s string) { b.WriteString(s + "\n") }
	line("-- What walpost needs. Run it in the database of the outbox, as the owner of")
	line("-- its tables, who also needs the right to create in the database.")
	line("-- wal_level must be logical: alter system set wal_level = logical, and restart.")
	line("")
	line("begin;")
	if opt.CreateTables {
		line("")
		line(createSchema + ";")
		guard, err := createGuard()
		if err != nil {
			return "", err
		}
		line(guard + ";")
		for _, t := range opt.Tables {
			line("")
			statements, err := tableStatements(t, opt.Payload)
			if err != nil {
				return "", err
			}
			for _, statement := range statements {
				line(statement + ";")
			}
		}
	}
	line("")
	line(publicationStatement(opt.Publication, opt.Tables) + ";")
	if opt.Checkpoint {
		line("")
		line("-- What a relay leaves behind, so that its successor sends nothing twice.")
		if !opt.CreateTables {
			line(createSchema + ";")
		}
		for _, statement := range checkpoint.Statements() {
			line(statement + ";")
		}
	}
	line("")
	line("commit;")
	line("")
	if opt.LaterSlot {
		line("-- The relay makes the slot itself, behind the snapshot of the rows that are")
		line("-- there (--snapshot initial). It takes one more free slot for the time being.")
		line("")
	} else {
		line("-- The slot comes after the publication, in a transaction of its own, by a role")
		line("-- with REPLICATION. It waits for the transactions that are open, and keeps WAL")
		line("-- from here on.")
		statement := slot.CreateSQL(opt.Slot, opt.Failover, newest)
		if opt.Failover {
			line("-- Before PostgreSQL 17 leave out the last argument, failover.")
		}
		line(statement + ";")
		line("")
	}
	rights, connections := "no right on the tables", "4"
	if opt.LaterSlot {
		rights, connections = "to read the tables, for the snapshot", "6"
	}
	line("-- Roles. The relay needs " + rights + ":")
	line("--   create role walpost_relay login replication connection limit " + connections + " password '...';")
	line("--   grant connect on database ... to walpost_relay;")
	line("--   pg_hba.conf: hostssl <database> walpost_relay <address>/32 scram-sha-256")
	line("-- REPLICATION reads every publication and drops any slot of the server: guard")
	line("-- this password like those of its databases.")
	if opt.LaterSlot {
		for _, t := range opt.Tables {
			line("--   grant select on " + pg.QuoteQualified(t.Schema, t.Name) + " to walpost_relay;")
		}
	}
	if opt.Checkpoint {
		for _, grant := range checkpoint.Grants("walpost_relay") {
			line("--   " + grant + ";")
		}
	}
	line("-- Who the slot's holder is, and the oldest transaction, is shown with:")
	line("--   grant pg_read_all_stats to walpost_relay;")
	line("-- The application inserts, and nothing else:")
	for _, t := range opt.Tables {
		line("--   grant insert on " + pg.QuoteQualified(t.Schema, t.Name) + " to ...;")
	}
	if opt.Consumer {
		tables, err := outbox.SQL(outbox.SchemaOptions{Parts: outbox.Consumption})
		if err != nil {
			return "", err
		}
		line("")
		line("-- What a consumer remembers, so that an event has its effect once. Run it in each")
		line("-- consumer's database, where the effects are: it need not be that of the outbox.")
		line("begin;")
		line("")
		b.WriteString(tables)
		line("")
		line("commit;")
	}
	return b.String(), nil
}
