package config

import (
	"errors"

	"github.com/walpost/walpost/internal/pg"
)

// checkDSN never quotes the connection string, nor what the driver says about
// it: in a broken one any part can be the password.
func (l *loader) checkDSN() {
	const name = "postgres.dsn"
	if l.bad[name] {
		return
	}
	if l.cfg.Postgres.DSN == "" {
		if l.needs(NeedPostgres) && l.env["PGHOST"] == "" && l.env["PGSERVICE"] == "" {
			l.failAt(name, "no PostgreSQL server is named", "set --dsn-file, WALPOST_DSN or --dsn; or libpq's PGHOST or PGSERVICE")
		}
		return
	}
	_, err := pg.ParseDSN(l.cfg.Postgres.DSN)
	if e, ok := errors.AsType[*pg.Error](err); ok {
		l.failAt(name, e.Text, e.Way)
	} else if err != nil {
		l.failAt(name, err.Error(), "")
	}
}
