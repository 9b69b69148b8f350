package admin

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pglogrepl"

	"github.com/walpost/walpost/internal/relay"
	"github.com/walpost/walpost/sink"
	"github.com/walpost/walpost/slot"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// full is a snapshot with everything in it.
func full() relay.Snapshot {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	return relay.Snapshot{
		At: at, StartedAt: at, Instance: "i", State: relay.Holding, Since: at, Reason: "poison", Detail: "detail", Hint: "hint",
		SlotName: "orders", SystemID: "7000", Timeline: 1, SlotStreaming: true, Received: 0x300, LowWater: 0x200, Confirmed: 0x100,
		LastServerMessage: at, LastEventCommit: at, OldestPending: at, Age: 1500 * time.Millisecond, AgeKnown: true, AgeExact: true,
		ClockSkew: time.Millisecond, SkewKnown: true, Pending: 2, EventsReceived: 7, EventsPublished: 5, PublishedSec: 2.5,
		Ignored: map[string]uint64{"not_insert": 1},
		Sink: sink.Status{
			InFlightRecords: 2, InFlightBytes: 8320, InFlightPartitions: 1, LimitBytes: 1 << 25, LastAck: at, LastContact: at, HoldCount: 1,
			Holds: []sink.Hold{{Topic: "t", Partition: 3, Class: sink.Poison, Reason: "MESSAGE_TOO_LARGE", Since: at, Attempts: 2,
				Err: &sink.DeliveryError{Topic: "t", Partition: 3, Reason: "MESSAGE_TOO_LARGE", Way: "make it smaller"}}},
		},
		Poison: &relay.Poison{EventID: "e", Table: "public.outbox_events", CommitLSN: 0x180, Ordinal: 4, Topic: "t", Partition: 3, Reason: "too large", Since: at},
		Slot: &slot.Info{Exists: true, Active: true, ActivePID: ptr(int32(9)), HolderApplication: "walpost/orders/i", HolderAddress: "192.0.2.1", WALStatus: "reserved",
			CurrentLSN: 0x400, LagBytes: ptr(int64(768)), RetainedBytes: ptr(int64(1024)),
			RestartLSN: ptr(pglogrepl.LSN(0x80)), ConfirmedFlushLSN: ptr(pglogrepl.LSN(0x100)), SafeWALBytes: ptr(int64(1 << 30)), LimitBytes: ptr(int64(2 << 30)),
			OtherSlotsMax: ptr(int64(5)), RestartPinner: &slot.Pinner{PID: 12, Application: "psql", Age: time.Minute}},
		SlotAt: at, SlotTook: time.Millisecond, PublicationOK: ptr(true),
	}
}

func TestStatusJSONIsAContract(t *testing.T) {
	t.Parallel()
	for file, snapshot := range map[string]relay.Snapshot{"testdata/status-full.json": full(), "testdata/status-empty.json": {SlotName: "orders"}} {
		_, body := ask(setup(t, snapshot, nil), "/status.json", here)
		var parsed any
		if err := json.Unmarshal([]byte(body), &parsed); err != nil {
			t.Fatal(err)
		}
		pretty, err := json.MarshalIndent(parsed, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		pretty = append(pretty, '\n')
		if *update {
			if err := os.WriteFile(file, pretty, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if string(pretty) != string(want) {
			t.Errorf("%s differs; -update if a field was added:\n%s", file, pretty)
		}
	}
}

// TestStatusEscapes: texts come from rows and servers. None may break the JSON,
// be markup, or move a terminal's cursor.
func TestStatusEscapes(t *testing.T) {
	t.Parallel()
	const nasty = "\x1b[2J</script>\"\\\u2028\xff"
	s := full()
	s.Detail, s.Poison.EventID, s.Poison.Reason, s.Poison.Table = nasty, nasty, nasty, nasty
	s.SlotErr, s.Sink.Holds[0].Err = errors.New(nasty), errors.New(nasty)
	_, body := ask(setup(t, s, nil), "/status.json", here)
	for _, bad := range []string{"\x1b", "<", ">", "\xff", "\u2028"} {
		if strings.Contains(body, bad) {
			t.Errorf("%q is in the answer: %s", bad, body)
		}
	}
	var got Status
	if err := json.Unmarshal([]byte(body), &got); err != nil {
		t.Fatal(err)
	}
	if want := "\x1b[2J</script>\"\\\u2028\uFFFD"; got.Poison.EventID != want || *got.Detail != want || *got.PollError != want || *got.Holds[0].Detail != want {
		t.Errorf("got %+v", got)
	}
}

func TestStatusIsBounded(t *testing.T) {
	t.Parallel()
	huge := "x" + strings.Repeat("é", 1<<20)
	s := full()
	s.Detail, s.Hint, s.Poison.EventID, s.Poison.Reason, s.SlotErr = huge, huge, huge, huge, errors.New(huge)
	for range sink.MaxHolds {
		s.Sink.Holds = append(s.Sink.Holds, sink.Hold{Topic: "t", Err: errors.New(huge)})
	}
	_, body := ask(setup(t, s, nil), "/status.json", here)
	var got Status
	if err := json.Unmarshal([]byte(body), &got); err != nil {
		t.Fatal(err)
	}
	if id := got.Poison.EventID; len(id) > maxText+len("…") || !strings.HasSuffix(id, "é…") {
		t.Errorf("the event id has %d bytes and ends in %q", len(id), id[len(id)-8:])
	}
	if len(body) > 100_000 {
		t.Errorf("the answer has %d bytes", len(body))
	}
}

func TestHintOfAWrappedError(t *testing.T) {
	t.Parallel()
	s := full()
	s.Sink.Holds[0].Err = fmt.Errorf("send: %w", s.Sink.Holds[0].Err)
	if h := StatusFrom(s).Holds[0].Hint; h == nil || *h != "make it smaller" {
		t.Errorf("got %v", h)
	}
}

func TestPreparedTransactionHasNoPID(t *testing.T) {
	t.Parallel()
	s := full()
	s.Slot.RestartPinner = &slot.Pinner{Prepared: "gid", Age: time.Hour}
	p := StatusFrom(s).Slot.RestartPinner
	if p == nil || p.PID != nil || p.Prepared == nil || *p.Prepared != "gid" || p.AgeSeconds != 3600 {
		t.Errorf("got %+v", p)
	}
}
