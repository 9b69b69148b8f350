package admin

import (
	"github.com/walpost/walpost/internal/metrics"
	"github.com/walpost/walpost/internal/relay"
)

// values is what the gauges show of a snapshot.
func values(s relay.Snapshot) metrics.Values {
	v := metrics.Values{
		State: string(s.State), Ready: s.Ready, SlotStreaming: s.SlotStreaming,
		LastEvent: s.LastEventCommit, LastServerMessage: s.LastServerMessage,
		InFlightEvents: s.Sink.InFlightRecords, InFlightBytes: s.Sink.InFlightBytes, InFlightLimitBytes: s.Sink.LimitBytes,
		Held: s.Sink.HoldCount, Poison: s.Poison != nil,
		Received: uint64(s.Received), LowWater: uint64(s.LowWater),
		Slot: s.Slot, PollSuccess: s.SlotErr == nil, PollTook: s.SlotTook, PollAt: s.SlotAt,
		PublicationOK: s.PublicationOK,
	}
	for _, state := range relay.States {
		v.States = append(v.States, string(state))
	}
	if s.AgeKnown {
		age := s.Age
		v.Age = &age
		v.PublishedThrough = s.At.Add(s.ClockSkew).Add(-age)
	}
	if s.SkewKnown {
		skew := s.ClockSkew
		v.ClockSkew = &skew
	}
	return v
}
