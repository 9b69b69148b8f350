package slot

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5/pgconn"
)

// History says which WAL an LSN belongs to: LSNs of two system identifiers, or
// of two timelines beyond the point where they part, have nothing to do with
// each other.
type History struct {
	SystemID string // empty: nothing is known
	Timeline int32
	LSN      pglogrepl.LSN
}

// check refuses a server whose WAL does not contain h. Nothing else would:
// neither START_REPLICATION nor a status update looks at a position beyond the
// end of the WAL; the server would skip every commit up to it.
func (h History) check(ctx context.Context, conn *pgconn.PgConn, id pglogrepl.IdentifySystemResult) error {
	if h.SystemID == "" {
		return nil
	}
	foreign := func(format string, args ...any) error {
		return &Error{
			Kind: ErrForeign,
			Text: fmt.Sprintf(format, args...),
			Way:  "if the database was moved or restored on purpose, restart walpost; it then starts from the slot's own position",
		}
	}
	if h.SystemID != id.SystemID {
		return foreign("the server is another database cluster: system identifier %s, was %s", id.SystemID, h.SystemID)
	}
	if id.XLogPos < h.LSN {
		return foreign("the server's WAL ends at %s, before %s which was already published and confirmed", id.XLogPos, h.LSN)
	}
	if id.Timeline == h.Timeline {
		return nil
	}
	resp, err := pglogrepl.TimelineHistory(ctx, conn, id.Timeline)
	if err != nil {
		return fmt.Errorf("timeline history %d: %w", id.Timeline, err)
	}
	end, ok, err := switchPoint(string(resp.Content), h.Timeline)
	switch {
	case err != nil:
		return fmt.Errorf("timeline history %d: %w", id.Timeline, err)
	case !ok:
		return foreign("timeline %d of the server does not descend from timeline %d", id.Timeline, h.Timeline)
	case h.LSN > end:
		return foreign("timeline %d of the server left timeline %d at %s, before %s which was already published",
			id.Timeline, h.Timeline, end, h.LSN)
	}
	return nil
}

// switchPoint finds where a timeline ended, in the text of a history file: a
// line per ancestor with its number, the position where the next one begins,
// and a reason.
func switchPoint(content string, timeline int32) (end pglogrepl.LSN, ok bool, err error) {
	for _, line := range strings.Split(content, "\n") {
		fields := strings.Fields(line)
		if len(fields) < 2 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		n, err := strconv.ParseInt(fields[0], 10, 32)
		if err != nil {
			return 0, false, fmt.Errorf("line %q: %w", line, err)
		}
		if int32(n) != timeline {
			continue
		}
		end, err := pglogrepl.ParseLSN(fields[1])
		return end, err == nil, err
	}
	return 0, false, nil
}
