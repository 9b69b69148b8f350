package decoder

// String gives the manual's name of the kind.
func (k Kind) String() string {
	switch k {
	case KindBegin:
		return "begin"
	case KindCommit:
		return "commit"
	case KindRelation:
		return "relation"
	case KindType:
		return "type"
	case KindOrigin:
		return "origin"
	case KindInsert:
		return "insert"
	case KindUpdate:
		return "update"
	case KindDelete:
		return "delete"
	case KindTruncate:
		return "truncate"
	case KindMessage:
		return "message"
	case KindStreamAbort:
		return "stream abort"
	default:
		return "unknown"
	}
}
