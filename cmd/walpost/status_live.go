package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/walpost/walpost/internal/admin"
	"github.com/walpost/walpost/internal/cli"
	"github.com/walpost/walpost/internal/relay"
)

// liveStatus is what only the running instance knows.
type liveStatus struct {
	Instance     string      `json:"instance"`
	State        string      `json:"state"`
	Since        time.Time   `json:"since"`
	Reason       *string     `json:"reason"`
	Detail       *string     `json:"detail"`
	Hint         *string     `json:"hint"`
	LagSeconds   *float64    `json:"lag_seconds"`
	InFlight     int64       `json:"in_flight_events"`
	Partitions   int         `json:"in_flight_partitions"`
	Published    uint64      `json:"published_events"`
	PublishedSec float64     `json:"published_per_second"`
	Poison       *livePoison `json:"poison"`
	// Protection says why a restart can repeat events; null where it cannot.
	Protection admin.Protection `json:"protection"`
}

// livePoison is the event that stops progress.
type livePoison struct {
	EventID   string    `json:"event_id"`
	Table     string    `json:"table"`
	CommitLSN string    `json:"commit_lsn"`
	Topic     string    `json:"topic"`
	Reason    string    `json:"reason"`
	Since     time.Time `json:"since"`
}

// fetchLive asks the running instance on this machine. It is nil when none
// answers, or one that relays another slot.
func fetchLive(ctx context.Context, listen, slot string) *liveStatus {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return nil
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "localhost"
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	url := "http://" + net.JoinHostPort(host, port) + "/status.json"
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil
	}
	// Straight to this machine: a proxy of the environment has no part in it.
	transport := &http.Transport{DisableKeepAlives: true}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return nil
	}
	defer response.Body.Close()
	var s admin.Status
	if response.StatusCode != http.StatusOK || json.NewDecoder(io.LimitReader(response.Body, 1<<20)).Decode(&s) != nil ||
		s.Slot.Name != slot {
		return nil
	}
	live := &liveStatus{
		Instance: s.Instance, State: s.State, Since: s.Since, Reason: s.Reason, Detail: s.Detail, Hint: s.Hint,
		LagSeconds: s.LagSeconds, InFlight: int64(s.InFlight.Events), Partitions: s.InFlight.Partitions,
		Published: s.Published.Events, PublishedSec: s.Published.PerSecond, Protection: s.Protection,
	}
	if p := s.Poison; p != nil {
		live.Poison = &livePoison{
			EventID: p.EventID, Table: p.Table, CommitLSN: p.CommitLSN, Topic: orUnknown(text(p.Topic)), Reason: p.Reason, Since: p.Since,
		}
	}
	return live
}

func (l *liveStatus) problems() problems {
	var list problems
	if p := l.Poison; p != nil {
		list = append(list, &problem{
			fmt.Sprintf("event %s of table %s at %s cannot be published: %s", p.EventID, p.Table, p.CommitLSN, p.Reason),
			text(l.Hint),
		})
	} else if l.Reason != nil && l.State != string(relay.WaitingForSlot) { // a standby does what it is there for
		list = append(list, &problem{"the relay does not publish: " + orUnknown(text(l.Detail)), text(l.Hint)})
	}
	return list
}

func (l *liveStatus) rows(t *cli.Table) {
	state := "since " + l.Since.UTC().Format(time.RFC3339) + ", instance " + l.Instance
	if l.Reason != nil {
		state += ": " + *l.Reason
	}
	t.Row("relay", l.State, state)
	t.Row("in flight", fmt.Sprintf("%d events", l.InFlight), fmt.Sprintf("in %d partitions", l.Partitions))
	t.Row("published", fmt.Sprintf("%d events", l.Published), fmt.Sprintf("%.0f/s", l.PublishedSec))
	for _, off := range []struct {
		name string
		why  *string
	}{{"fence", l.Protection.Fence}, {"tail", l.Protection.Tail}, {"checkpoint", l.Protection.Checkpoint}} {
		if off.why != nil {
			t.Row("at-least-once", off.name+" off", *off.why)
		}
	}
	if p := l.Poison; p != nil {
		t.Row("poison", p.EventID, fmt.Sprintf("%s at %s: %s", p.Table, p.CommitLSN, p.Reason))
	}
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
