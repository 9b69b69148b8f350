package testkit

import (
	"net/url"
	"strings"
)

// withDatabase replaces database, user and password of a connection string, in
// either of PostgreSQL's two forms, and keeps everything else.
func withDatabase(dsn, database, user, password string) string {
	u, err := url.Parse(dsn)
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" {
		// In the keyword form the last one wins.
		dsn += " dbname=" + quoteValue(database) + " user=" + quoteValue(user)
		if password != "" {
			dsn += " password=" + quoteValue(password)
		}
		return dsn
	}
	u.Path = "/" + database
	u.User = url.User(user)
	if password != "" {
		u.User = url.UserPassword(user, password)
	}
	query := u.Query() // which wins over the rest
	for _, name := range []string{"dbname", "user", "password"} {
		query.Del(name)
	}
	u.RawQuery = query.Encode()
	return u.String()
}

func quoteValue(value string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(value) + "'"
}
