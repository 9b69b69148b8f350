package logging

// The keys of fields. They are a contract: people search and alert by them.
const (
	Slot        = "slot"
	Publication = "publication"
	Table       = "table"
	Instance    = "instance"
	State       = "state"
	Reason      = "reason"
	LSN         = "lsn"
	EndLSN      = "end_lsn"
	XID         = "xid"
	Topic       = "topic"
	Partition   = "partition"
	Broker      = "broker"
	Records     = "records"
	Bytes       = "bytes"
	EventID     = "event_id"
	Attempt     = "attempt"
	Took        = "took"
	Address     = "address"
	Version     = "version"
	Hint        = "hint"
	Err         = "err"
	ErrClass    = "err_class"
)
