package relay

import (
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/walpost/walpost/sink"
)

const (
	// silence is how long the server, or Kafka with something pending, may say
	// nothing before the relay is not ready.
	silence = 30 * time.Second
	// behind is the age from which the relay is catching up.
	behind = 10 * time.Second
	// stuck is how long a passing fault of Kafka may last, with events pending,
	// before it is shown as the reason for standing still.
	stuck = 5 * time.Second
)

// Snapshot tells how things are. Safe for concurrent use; it waits for nothing.
func (r *Relay) Snapshot() Snapshot {
	now := r.now()
	observed := r.monitor.Latest()
	sinkStatus := r.sink.Status()
	transactions, events, oldest := r.tracker.Pending()

	r.mu.Lock()
	stream, confirmed, broken := r.stream, r.confirmed, r.broken
	r.mu.Unlock()
	s := Snapshot{
		At: now, Instance: r.opt.Instance, SlotName: r.opt.SlotName,
		SlotStreaming: stream != nil, LowWater: r.tracker.Mark(), Confirmed: confirmed,
		Pending: transactions, OldestPending: oldest,
		EventsReceived: r.received.Load(), EventsPublished: r.published.Load(),
		Sink: sinkStatus, CheckpointOff: r.recovery.why(),
		Slot: observed.Info, SlotErr: observed.Err, SlotAt: observed.At, SlotTook: observed.Took,
	}
	if stream != nil {
		s.Received, s.Confirmed, s.LastServerMessage = stream.Positions()
	}
	if observed.Published != nil || observed.PublicationErr != nil {
		ok := observed.PublicationErr == nil && broken == nil
		s.PublicationOK = &ok
	}

	r.status.mu.Lock()
	defer r.status.mu.Unlock()
	t := &r.status
	s.StartedAt, s.State, s.Since, s.Reason = t.started, t.state, t.since, t.reason
	s.SystemID, s.Timeline = t.known.SystemID, t.known.Timeline
	s.LastEventCommit = t.newest
	s.ClockSkew, s.SkewKnown = t.clockSkew()
	s.Ignored = maps.Clone(t.ignored)
	s.explain(t.err)
	if t.poison != nil && events == 0 {
		// It was not handed over, but it is the oldest that is not published.
		s.OldestPending, events = t.poison.Committed, 1
	}
	s.age(now, t.zeroAt, t.lastHeard, events)
	s.PublishedSec = t.rate(now, s.EventsPublished)
	s.findPoison(r, t)
	s.judge(now, t, events, r.recovery.pending())
	return s
}

// explain takes the two lines for people out of an error.
func (s *Snapshot) explain(err error) {
	if err == nil {
		return
	}
	s.Detail, s.Hint = err.Error(), hint(err)
}

// hint is what an error says to do; it may be empty.
func hint(err error) string {
	var h interface{ Hint() string }
	if errors.As(err, &h) {
		return h.Hint()
	}
	return ""
}

// age of the oldest event that is not published, by the server's clock. With
// nothing pending and a server that was heard of lately it is zero. Otherwise
// it can only be bounded: by the time since it last was zero.
func (s *Snapshot) age(now, zeroAt, lastHeard time.Time, events int) {
	switch {
	case events > 0:
		s.AgeKnown, s.AgeExact = true, true
		s.Age = max(now.Add(s.ClockSkew).Sub(s.OldestPending), 0)
	case s.SlotStreaming && !lastHeard.IsZero() && zeroAt.After(lastHeard.Add(-time.Second)) && now.Sub(lastHeard) < silence:
		s.AgeKnown, s.AgeExact = true, true
	case !zeroAt.IsZero():
		s.AgeKnown = true
		s.Age = now.Sub(zeroAt)
	}
}

// findPoison shows the event in the way: the pump's, or the sink's first.
func (s *Snapshot) findPoison(r *Relay, t *status) {
	if t.poison != nil {
		p := *t.poison
		s.Poison = &p
		s.explain(t.poisonErr)
		return
	}
	for i := range s.Sink.Holds {
		h := &s.Sink.Holds[i]
		if h.Class != sink.Poison || h.Poison == nil {
			continue
		}
		p := Poison{
			Ordinal: h.Poison.Tag.Ordinal, Topic: h.Topic, Partition: h.Partition,
			Reason: h.Reason, Since: h.Since,
		}
		if h.Err != nil {
			p.Reason = h.Err.Error()
		}
		p.CommitLSN, _ = r.tracker.CommitLSN(h.Poison.Tag.Tx)
		if tables := r.opt.Translator.Tables(); int(h.Poison.Tag.Source) < len(tables) {
			p.Table = tables[h.Poison.Tag.Source]
		}
		for _, header := range h.Poison.Headers {
			if header.Name == "id" {
				p.EventID = string(header.Value)
				break
			}
		}
		s.Poison = &p
		return
	}
}

// judge refines the state and decides readiness.
func (s *Snapshot) judge(now time.Time, t *status, events int, recovering bool) {
	connected := s.State == CatchingUp || s.State == Streaming
	if connected {
		hold := worst(s.Sink.Holds)
		waited := events > 0 && now.Sub(later(t.lastAck, s.OldestPending.Add(-s.ClockSkew))) > stuck
		switch {
		case t.poison != nil:
			s.State, s.Reason = Holding, "poison"
			s.Since = t.poison.Since
		case hold != nil && (hold.Class != sink.Passing || waited || s.Sink.LastContact.IsZero()):
			s.State, s.Since = Holding, hold.Since
			s.explain(hold.Err)
			s.Reason = holdReason(hold)
		case s.AgeKnown && s.AgeExact && s.Age < behind:
			s.State = Streaming
		default:
			s.State = CatchingUp
		}
		connected = s.State != Holding
	}
	switch {
	case !connected:
	case s.Sink.LastContact.IsZero():
		s.Reason = "kafka_connecting"
		s.Detail = "no broker has answered yet"
	case recovering:
		s.Reason = "recovering"
		s.Detail = "reading what the last instance delivered"
	case !t.initial && s.LastServerMessage.IsZero() && now.Sub(s.Since) > silence,
		!s.LastServerMessage.IsZero() && now.Sub(s.LastServerMessage) > silence:
		s.Reason = "postgres_silent"
		s.Detail = fmt.Sprintf("no message from PostgreSQL for %s", silence)
	case events > 0 && now.Sub(later(t.lastAck, s.OldestPending.Add(-s.ClockSkew), s.Since)) > silence:
		s.Reason = "kafka_silent"
		s.Detail = fmt.Sprintf("events are pending and Kafka acknowledged none for %s", silence)
	case s.PublicationOK != nil && !*s.PublicationOK:
		s.Reason = "publication"
	default:
		s.Ready = true
	}
	s.StandbyReady = s.Ready || s.State == WaitingForSlot &&
		s.SlotErr == nil && now.Sub(s.SlotAt) < silence && now.Sub(s.Sink.LastContact) < silence
}

func worst(holds []sink.Hold) *sink.Hold {
	if len(holds) == 0 {
		return nil
	}
	return &holds[0] // the sink sorts them
}

func holdReason(h *sink.Hold) string {
	switch {
	case h.Class == sink.Poison:
		return "poison"
	case h.Class == sink.Passing:
		return "kafka_unreachable"
	case h.Reason == "UNKNOWN_TOPIC_OR_PARTITION":
		return "topic_missing"
	default:
		return "kafka_refuses"
	}
}

func later(times ...time.Time) time.Time {
	var latest time.Time
	for _, t := range times {
		if t.After(latest) {
			latest = t
		}
	}
	return latest
}
