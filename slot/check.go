package slot

import (
	"fmt"
	"regexp"

	"github.com/walpost/walpost/internal/pg"
)

var slotName = regexp.MustCompile(`^[a-z0-9_]{1,63}$`)

// CheckName refuses what PostgreSQL would refuse as the name of a slot.
func CheckName(name string) error {
	if slotName.MatchString(name) {
		return nil
	}
	return &Error{
		Kind: ErrUnfit,
		Text: quote(name) + " cannot be the name of a slot",
		Way:  "use lower case letters, digits and underscores, at most 63 of them",
	}
}

// CheckSlot says why the relay cannot stream from the slot in this database,
// whatever else may be wrong. A slot that is in use is found by starting.
func CheckSlot(info *Info, database string) error {
	if !info.Exists {
		return notFound(info.Name, nil)
	}
	unfit := func(text, way string) error {
		return &Error{Kind: ErrUnfit, Text: "slot " + quote(info.Name) + " " + text, Way: way}
	}
	another := `choose another name with --slot, or drop it if nobody needs it: select pg_drop_replication_slot(` +
		pg.QuoteLiteral(info.Name) + `)`
	switch {
	case info.SlotType != "logical":
		return unfit("is a "+info.SlotType+" slot: a standby or a backup tool may own it", "choose another name with --slot")
	case info.Temporary:
		return unfit("is temporary: it ends with the session that made it", "choose another name with --slot")
	case info.Plugin != "pgoutput":
		return unfit(fmt.Sprintf("uses plugin %q, not pgoutput: another program may own it", info.Plugin), another)
	case info.Database != database:
		return unfit(fmt.Sprintf("belongs to database %q, and this is %q", info.Database, database),
			"name the slot's database in --dsn, or choose another name with --slot")
	case info.TwoPhase:
		return unfit("decodes prepared transactions (two_phase), which would come before they are committed", another)
	case info.InRecovery && info.Synced != nil && *info.Synced:
		return unfit("is a synchronized copy on a standby", "connect to the primary: list all hosts of the cluster in --dsn")
	case info.WALStatus == "lost" || info.InvalidationCause != "":
		return lostSlot(info)
	}
	return nil
}

// lostSlot names cause, range and way out of an invalidated slot.
func lostSlot(info *Info) *Error {
	cause := info.InvalidationCause
	switch cause {
	case "", "wal_removed":
		// Before 17 the server does not tell; this is the usual one.
		cause = "it held back more WAL than max_slot_wal_keep_size allows"
	case "idle_timeout":
		cause = "it was idle for longer than idle_replication_slot_timeout"
	case "rows_removed":
		cause = "a conflict with recovery removed catalog rows that it needed"
	case "wal_level_insufficient":
		cause = "wal_level was lowered"
	}
	from := "an unknown position"
	if info.ConfirmedFlushLSN != nil {
		from = info.ConfirmedFlushLSN.String()
	}
	return &Error{
		Kind: ErrLost,
		Text: fmt.Sprintf("slot %q is lost, because %s: events committed after %s (the WAL is at %s now) will not come from it",
			info.Name, cause, from, info.CurrentLSN),
		Way: fmt.Sprintf("note that position, drop the slot (select pg_drop_replication_slot(%s)), run \"walpost init\", and publish the events since then from the table",
			pg.QuoteLiteral(info.Name)),
	}
}
