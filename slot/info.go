package slot

import (
	"time"

	"github.com/jackc/pglogrepl"
)

// Info is what pg_replication_slots and its surroundings say of one slot.
// Pointers are nil where the server says NULL, where its version has no such
// column or where the role may not see it.
type Info struct {
	Name      string
	Exists    bool
	Plugin    string
	SlotType  string // "logical" or "physical"
	Database  string
	Temporary bool
	TwoPhase  bool

	Active            bool
	ActivePID         *int32
	HolderApplication string // of the active pid, as pg_stat_activity shows it
	HolderAddress     string
	// HolderEnding says that the active session was told to end and cannot:
	// its client does not read. Whoever told it waits, and when it is the
	// checkpointer, because the slot is to be invalidated, the server makes no
	// checkpoint until the client has gone.
	HolderEnding bool

	RestartLSN        *pglogrepl.LSN
	ConfirmedFlushLSN *pglogrepl.LSN
	WALStatus         string // reserved, extended, unreserved, lost; "" when NULL
	InvalidationCause string // 17 and later
	SafeWALBytes      *int64
	LimitBytes        *int64 // max_slot_wal_keep_size; nil when unlimited
	Failover          *bool
	Synced            *bool

	// CurrentLSN is pg_current_wal_lsn, or the replay position of a standby.
	CurrentLSN    pglogrepl.LSN
	LagBytes      *int64 // CurrentLSN - ConfirmedFlushLSN
	RetainedBytes *int64 // CurrentLSN - RestartLSN

	ServerTime     time.Time
	ServerVersion  int // server_version_num
	InRecovery     bool
	SystemID       string
	RestartPinner  *Pinner // the oldest transaction that holds RestartLSN back
	OtherSlotsMax  *int64  // retained bytes of the largest other slot
	ArchiverFailed *bool
}

// Pinner is the session or prepared transaction that keeps restart_lsn back.
type Pinner struct {
	PID         int32
	Application string
	Age         time.Duration
	Prepared    string // gid, for a prepared transaction
}
