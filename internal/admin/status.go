package admin

import (
	"errors"
	"strings"
	"time"

	"github.com/jackc/pglogrepl"

	"github.com/walpost/walpost/internal/relay"
	"github.com/walpost/walpost/sink"
)

// Status is the contract of /status.json: fields are added, never renamed or
// removed; null is what is not known. LSNs are strings, times RFC 3339 in UTC.
// Texts longer than 2 KiB are cut and end in "…".
type Status struct {
	At            time.Time         `json:"at"`
	StartedAt     time.Time         `json:"started_at"`
	Instance      string            `json:"instance"`
	State         string            `json:"state"`
	Since         time.Time         `json:"since"`
	Ready         bool              `json:"ready"`
	StandbyReady  bool              `json:"standby_ready"`
	Reason        *string           `json:"reason"`
	Detail        *string           `json:"detail"`
	Hint          *string           `json:"hint"`
	LagSeconds    *float64          `json:"lag_seconds"`
	LagExact      bool              `json:"lag_exact"` // false: an upper bound
	Slot          Slot              `json:"slot"`
	Positions     Positions         `json:"positions"`
	InFlight      InFlight          `json:"in_flight"`
	Received      uint64            `json:"received_events"`
	Published     Published         `json:"published"`
	Ignored       map[string]uint64 `json:"ignored"`
	Poison        *Poison           `json:"poison"`
	Holds         []Hold            `json:"holds"`
	HoldCount     int               `json:"hold_count"`
	PublicationOK *bool             `json:"publication_ok"`
	Protection    Protection        `json:"protection"`
	ClockSkew     *float64          `json:"clock_skew_seconds"`
	PollError     *string           `json:"poll_error"`
	PolledAt      *time.Time        `json:"polled_at"`

	LastServerMessage *time.Time `json:"last_server_message"` // of PostgreSQL, on the stream
	LastKafkaContact  *time.Time `json:"last_kafka_contact"`
}

// Slot as PostgreSQL showed it at polled_at.
type Slot struct {
	Name              string  `json:"name"`
	SystemID          *string `json:"system_id"`
	Timeline          *int32  `json:"timeline"`
	Streaming         bool    `json:"streaming"` // this instance holds it
	Exists            *bool   `json:"exists"`
	Active            *bool   `json:"active"`
	ActivePID         *int32  `json:"active_pid"`
	HolderApplication *string `json:"holder_application"`
	HolderAddress     *string `json:"holder_address"`
	WALStatus         *string `json:"wal_status"`
	InvalidationCause *string `json:"invalidation_cause"`
	RestartLSN        *string `json:"restart_lsn"`
	ConfirmedFlushLSN *string `json:"confirmed_flush_lsn"`
	CurrentLSN        *string `json:"current_lsn"`
	LagBytes          *int64  `json:"lag_bytes"`
	RetainedBytes     *int64  `json:"retained_bytes"`
	SafeWALBytes      *int64  `json:"safe_wal_bytes"`
	LimitBytes        *int64  `json:"limit_bytes"` // null when there is none
	RestartPinner     *Pinner `json:"restart_pinner"`
	OtherSlotsMax     *int64  `json:"other_slots_max_retained_bytes"`
}

// Pinner is the session or prepared transaction that keeps restart_lsn back.
type Pinner struct {
	PID         *int32  `json:"pid"`
	Application *string `json:"application"`
	Prepared    *string `json:"prepared"`
	AgeSeconds  float64 `json:"age_seconds"`
}

// Protection against duplicates after this process was killed: null where it
// is there, else why it is not.
type Protection struct {
	Fence      *string `json:"fence_off"`      // an old instance that lives on cannot write
	Tail       *string `json:"tail_off"`       // what the last one delivered was read
	Checkpoint *string `json:"checkpoint_off"` // the next one will know what we delivered
}

// Positions of this instance.
type Positions struct {
	Received  *string `json:"received_lsn"`
	LowWater  *string `json:"low_water_lsn"`
	Confirmed *string `json:"confirmed_lsn"` // sent to PostgreSQL
}

// InFlight is what was handed to Kafka and is not acknowledged.
type InFlight struct {
	Events       int        `json:"events"`
	Bytes        int64      `json:"bytes"`
	LimitBytes   int64      `json:"limit_bytes"`
	Partitions   int        `json:"partitions"`
	Transactions int        `json:"transactions"`
	OldestCommit *time.Time `json:"oldest_commit"`
}

// Published counts since the start of the process.
type Published struct {
	Events     uint64     `json:"events"`
	PerSecond  float64    `json:"per_second"`
	LastCommit *time.Time `json:"last_commit"`
	LastAck    *time.Time `json:"last_ack"`
}

// Poison is the event that cannot be published.
type Poison struct {
	EventID   string    `json:"event_id"`
	Table     string    `json:"table"`
	CommitLSN string    `json:"commit_lsn"`
	Ordinal   uint32    `json:"ordinal"`
	Topic     *string   `json:"topic"`
	Partition *int32    `json:"partition"`
	Reason    string    `json:"reason"`
	Since     time.Time `json:"since"`
}

// Hold is a partition or topic that does not move.
type Hold struct {
	Topic     *string   `json:"topic"`
	Partition *int32    `json:"partition"`
	Class     string    `json:"class"`
	Reason    string    `json:"reason"`
	Detail    *string   `json:"detail"`
	Hint      *string   `json:"hint"`
	Since     time.Time `json:"since"`
	Attempts  int       `json:"attempts"`
}

// StatusFrom a snapshot.
func StatusFrom(s relay.Snapshot) Status {
	out := Status{
		At: s.At.UTC(), StartedAt: s.StartedAt.UTC(), Instance: s.Instance,
		State: string(s.State), Since: s.Since.UTC(), Ready: s.Ready, StandbyReady: s.StandbyReady,
		Reason: text(s.Reason), Detail: text(s.Detail), Hint: text(s.Hint),
		LagExact: s.AgeExact,
		Slot:     slotStatus(s),
		Positions: Positions{
			Received: position(s.Received), LowWater: position(s.LowWater), Confirmed: position(s.Confirmed),
		},
		InFlight: InFlight{
			Events: s.Sink.InFlightRecords, Bytes: s.Sink.InFlightBytes, LimitBytes: s.Sink.LimitBytes,
			Partitions: s.Sink.InFlightPartitions, Transactions: s.Pending, OldestCommit: instant(s.OldestPending),
		},
		Received: s.EventsReceived,
		Published: Published{
			Events: s.EventsPublished, PerSecond: s.PublishedSec,
			LastCommit: instant(s.LastEventCommit), LastAck: instant(s.Sink.LastAck),
		},
		Ignored: s.Ignored, Holds: []Hold{}, HoldCount: s.Sink.HoldCount,
		Protection: Protection{
			Fence: text(s.Sink.Protection.Fence), Tail: text(s.Sink.Protection.Tail), Checkpoint: text(s.CheckpointOff),
		},
		PublicationOK: s.PublicationOK, PolledAt: instant(s.SlotAt),
		LastServerMessage: instant(s.LastServerMessage), LastKafkaContact: instant(s.Sink.LastContact),
	}
	if out.Ignored == nil {
		out.Ignored = map[string]uint64{}
	}
	if s.AgeKnown {
		seconds := s.Age.Seconds()
		out.LagSeconds = &seconds
	}
	if s.SkewKnown {
		seconds := s.ClockSkew.Seconds()
		out.ClockSkew = &seconds
	}
	if s.SlotErr != nil {
		out.PollError = text(s.SlotErr.Error())
	}
	if p := s.Poison; p != nil {
		out.Poison = &Poison{
			EventID: clip(p.EventID), Table: p.Table, CommitLSN: p.CommitLSN.String(), Ordinal: p.Ordinal,
			Topic: text(p.Topic), Partition: partition(p.Partition), Reason: clip(p.Reason), Since: p.Since.UTC(),
		}
	}
	for i := range s.Sink.Holds {
		out.Holds = append(out.Holds, hold(&s.Sink.Holds[i]))
	}
	return out
}

func slotStatus(s relay.Snapshot) Slot {
	out := Slot{Name: s.SlotName, SystemID: text(s.SystemID), Streaming: s.SlotStreaming}
	if s.Timeline != 0 {
		out.Timeline = &s.Timeline
	}
	i := s.Slot
	if i == nil {
		return out
	}
	out.Exists, out.CurrentLSN = &i.Exists, position(i.CurrentLSN)
	if !i.Exists {
		return out
	}
	out.Active, out.ActivePID, out.HolderApplication = &i.Active, i.ActivePID, text(i.HolderApplication)
	out.HolderAddress, out.InvalidationCause, out.OtherSlotsMax = text(i.HolderAddress), text(i.InvalidationCause), i.OtherSlotsMax
	out.WALStatus = text(i.WALStatus)
	if i.RestartLSN != nil {
		out.RestartLSN = position(*i.RestartLSN)
	}
	if i.ConfirmedFlushLSN != nil {
		out.ConfirmedFlushLSN = position(*i.ConfirmedFlushLSN)
	}
	out.LagBytes, out.RetainedBytes = i.LagBytes, i.RetainedBytes
	out.SafeWALBytes, out.LimitBytes = i.SafeWALBytes, i.LimitBytes
	if p := i.RestartPinner; p != nil {
		out.RestartPinner = &Pinner{Application: text(p.Application), Prepared: text(p.Prepared), AgeSeconds: p.Age.Seconds()}
		if p.Prepared == "" {
			out.RestartPinner.PID = &p.PID
		}
	}
	return out
}

func hold(h *sink.Hold) Hold {
	out := Hold{
		Topic: text(h.Topic), Partition: partition(h.Partition), Class: h.Class.String(), Reason: h.Reason,
		Since: h.Since.UTC(), Attempts: h.Attempts,
	}
	if h.Err != nil {
		out.Detail = text(h.Err.Error())
		var hinter interface{ Hint() string }
		if errors.As(h.Err, &hinter) {
			out.Hint = text(hinter.Hint())
		}
	}
	return out
}

// maxText bounds a text. Event ids and the servers' error texts come from
// outside and may be of any size.
const maxText = 2048

func clip(s string) string {
	if len(s) <= maxText {
		return s
	}
	// A character that is cut through is invalid UTF-8.
	return strings.ToValidUTF8(s[:maxText], "") + "…"
}

func text(s string) *string {
	if s == "" {
		return nil
	}
	s = clip(s)
	return &s
}

func position(lsn pglogrepl.LSN) *string {
	if lsn == 0 {
		return nil
	}
	return text(lsn.String())
}

func partition(p int32) *int32 {
	if p < 0 {
		return nil
	}
	return &p
}

func instant(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}
