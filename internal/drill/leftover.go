package drill

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/walpost/walpost/internal/pg"
)

// groupNames are the consumer groups that drills make, below their topic's name.
var groupNames = [...]string{"group", "later", "one", "two", "reset"}

// Leftovers names what drills that were killed have left in the database, which
// is also their name there. One that still runs is none: it holds a lock.
func Leftovers(ctx context.Context, cfg *pgx.ConnConfig) ([]string, error) {
	conn, err := pg.Connect(ctx, cfg, application)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	rows, err := conn.Query(ctx, `select name from (
  select nspname::text as name from pg_namespace
  union select pubname::text from pg_publication
  union select slot_name::text from pg_replication_slots where database = current_database()) s
where name ~ ('^' || $1 || '[0-9a-f]{12}$') order by name`, prefix)
	if err != nil {
		return nil, fmt.Errorf("look for leftovers: %w", err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("look for leftovers: %w", err)
	}
	var left []string
	for _, name := range names {
		var free bool
		if err := conn.QueryRow(ctx, "select pg_try_advisory_lock(hashtextextended($1, 0))", name).Scan(&free); err != nil {
			return nil, fmt.Errorf("look for leftovers: %w", err)
		}
		if free {
			left = append(left, name)
		}
	}
	return left, nil
}

// Clean removes what the drill of that name has left: topic, groups, slot,
// publication and schema.
func Clean(ctx context.Context, opt Options, name string) error {
	id, ours := strings.CutPrefix(name, prefix)
	if !ours {
		return fmt.Errorf("%q is not a drill's", name)
	}
	b := newBroker(opt, topicPrefix+id)
	defer b.close()
	b.made = true
	var groups []string
	for _, group := range groupNames {
		groups = append(groups, b.topic+"."+group)
	}
	return errors.Join(b.drop(ctx, groups), dropDatabase(ctx, opt.Conn, name))
}
