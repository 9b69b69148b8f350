package router

// Outcome says what became of a change.
type Outcome uint8

// What Record and SnapshotRow return.
const (
	Published       Outcome = iota + 1
	SkippedDelete           // an outbox row may be deleted
	SkippedTruncate         // so may all of them
	SkippedUpdate           // the primary key is what it was
	SkippedOther            // nothing that happens to a row
)

// String is the outcome as the reason label of a metric.
func (o Outcome) String() string {
	switch o {
	case Published:
		return "published"
	case SkippedDelete:
		return "delete"
	case SkippedTruncate:
		return "truncate"
	case SkippedUpdate:
		return "update"
	case SkippedOther:
		return "other"
	}
	return "unknown"
}
