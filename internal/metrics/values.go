package metrics

import (
	"strconv"
	"time"

	"github.com/walpost/walpost/slot"
)

// Values are what the gauges show, at one instant. Zero times and nil pointers
// are unknown and give no series.
type Values struct {
	State  string
	States []string // all of them
	Ready  bool

	SlotStreaming     bool
	Age               *time.Duration
	PublishedThrough  time.Time
	LastEvent         time.Time
	LastServerMessage time.Time
	ClockSkew         *time.Duration

	InFlightEvents     int
	InFlightBytes      int64
	InFlightLimitBytes int64
	Held               int
	Poison             bool

	Received uint64 // WAL positions; 0 is unknown
	LowWater uint64

	Slot          *slot.Info
	PollSuccess   bool
	PollTook      time.Duration
	PollAt        time.Time
	PublicationOK *bool
}

// sample is one gauge's value.
type sample struct {
	name   string
	value  float64
	labels []string
}

// samples of all gauges but build_info.
func (v *Values) samples() []sample {
	var s []sample
	add := func(name string, value float64, labels ...string) { s = append(s, sample{name, value, labels}) }
	for _, state := range v.States {
		add("state", truth(state == v.State), state)
	}
	add("ready", truth(v.Ready))
	add("slot_streaming", truth(v.SlotStreaming))
	if v.Age != nil {
		add("oldest_unpublished_age_seconds", v.Age.Seconds())
	}
	at := func(name string, t time.Time) {
		if !t.IsZero() {
			add(name, float64(t.UnixMicro())/1e6)
		}
	}
	at("published_through_timestamp_seconds", v.PublishedThrough)
	at("last_event_timestamp_seconds", v.LastEvent)
	at("last_server_message_timestamp_seconds", v.LastServerMessage)
	if v.ClockSkew != nil {
		add("clock_skew_seconds", v.ClockSkew.Seconds())
	}
	add("in_flight_events", float64(v.InFlightEvents))
	add("in_flight_bytes", float64(v.InFlightBytes))
	if v.InFlightLimitBytes > 0 {
		add("in_flight_limit_bytes", float64(v.InFlightLimitBytes))
	}
	add("held_partitions", float64(v.Held))
	add("poison", truth(v.Poison))
	if v.Received > 0 {
		add("received_position_bytes", float64(v.Received))
	}
	if v.LowWater > 0 {
		add("low_water_position_bytes", float64(v.LowWater))
	}
	if v.PublicationOK != nil {
		add("publication_ok", truth(*v.PublicationOK))
	}
	if !v.PollAt.IsZero() {
		add("postgres_poll_success", truth(v.PollSuccess))
		add("postgres_poll_seconds", v.PollTook.Seconds())
		at("postgres_poll_timestamp_seconds", v.PollAt)
	}
	return append(s, slotSamples(v.Slot)...)
}

func slotSamples(i *slot.Info) []sample {
	if i == nil {
		return nil
	}
	var s []sample
	add := func(name string, value float64, labels ...string) { s = append(s, sample{name, value, labels}) }
	bytes := func(name string, n *int64) {
		if n != nil {
			add(name, float64(*n))
		}
	}
	if i.CurrentLSN > 0 {
		add("postgres_wal_position_bytes", float64(i.CurrentLSN))
	}
	bytes("other_slots_retained_wal_bytes", i.OtherSlotsMax)
	if i.ArchiverFailed != nil {
		add("archiver_failing", truth(*i.ArchiverFailed))
	}
	add("slot_present", truth(i.Exists))
	if !i.Exists {
		return s
	}
	add("slot_info", 1, i.Database, i.Plugin, flag(i.Failover), flag(i.Synced), flag(&i.TwoPhase), i.InvalidationCause)
	if i.ConfirmedFlushLSN != nil {
		add("confirmed_position_bytes", float64(*i.ConfirmedFlushLSN))
	}
	bytes("slot_lag_bytes", i.LagBytes)
	bytes("slot_retained_wal_bytes", i.RetainedBytes)
	bytes("slot_safe_wal_bytes", i.SafeWALBytes)
	bytes("slot_wal_limit_bytes", i.LimitBytes)
	if i.WALStatus != "" {
		for _, status := range []string{"reserved", "extended", "unreserved", "lost"} {
			add("slot_wal_status", truth(status == i.WALStatus), status)
		}
	}
	if i.RestartPinner != nil {
		add("slot_holder_age_seconds", i.RestartPinner.Age.Seconds())
	}
	return s
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// flag as a label; empty when the server does not say.
func flag(b *bool) string {
	if b == nil {
		return ""
	}
	return strconv.FormatBool(*b)
}
