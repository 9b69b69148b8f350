package slot

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pglogrepl"
)

// History says which WAL an LSN belongs to: LSNs of two system identifiers, or
// of two timelines beyond the point where they part, have nothing to do with
// each other.
type History struct {
	SystemID string // empty: nothing is known
	Timeline int32
	LSN      pglogrepl.LSN
	// Reach is the newest position that events in flight belong to, when it is
	// beyond LSN: they will be confirmed as well, and are not taken twice.
	Reach pglogrepl.LSN
}

// check refuses a server whose WAL does not contain h. Nothing else would:
// neither START_REPLICATION nor a status update looks at a position beyond the
// end of the WAL; the server would skip every commit up to it. file gives the
// history file of the server's timeline.
func (h History) check(id pglogrepl.IdentifySystemResult, file func() (string, error)) error {
	if h.SystemID == "" {
		return nil
	}
	if h.SystemID != id.SystemID {
		return foreign("the server is another database cluster: system identifier %s, was %s", id.SystemID, h.SystemID)
	}
	newest := max(h.LSN, h.Reach)
	if id.XLogPos < newest {
		return foreign("the server's WAL ends at %s, before %s which was already received or published", id.XLogPos, newest)
	}
	if id.Timeline == h.Timeline {
		return nil
	}
	content, err := file()
	if err != nil {
		return fmt.Errorf("timeline history %d: %w", id.Timeline, err)
	}
	end, ok, err := switchPoint(content, h.Timeline)
	switch {
	case err != nil:
		return fmt.Errorf("timeline history %d: %w", id.Timeline, err)
	case !ok:
		return foreign("timeline %d of the server does not descend from timeline %d", id.Timeline, h.Timeline)
	case newest > end:
		return foreign("timeline %d of the server left timeline %d at %s, before %s which was already received or published",
			id.Timeline, h.Timeline, end, newest)
	}
	return nil
}

func foreign(format string, args ...any) error {
	return &Error{
		Kind: ErrForeign,
		Text: fmt.Sprintf(format, args...),
		Way:  "if the database was moved or restored on purpose, restart walpost; it then starts from the slot's own position",
	}
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
