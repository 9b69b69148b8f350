package takeover

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pglogrepl"

	"github.com/walpost/walpost/internal/debezium/connector"
	"github.com/walpost/walpost/internal/debezium/router"
	"github.com/walpost/walpost/slot"
)

func TestCompare(t *testing.T) {
	t.Parallel()
	const at = pglogrepl.LSN(100)
	tests := map[string]struct {
		flushed, delivered pglogrepl.LSN
		had, keepAlives    bool
		state              State
		text               string
		finding            string
	}{
		"the same":      {100, 100, false, false, StateAgrees, "it is the slot's", ""},
		"one behind it": {100, 140, false, false, StateAgrees, "it is the slot's; what Debezium has published behind it, up to 0/8C at least, is found in Kafka by its id and not sent again", ""},
		"not confirmed": {120, 140, false, false, StateAhead, "Debezium has published up to 0/8C and confirmed up to 0/64: what is between is found in Kafka by its id and not sent again", ""},
		// The stored commit is older, and what was passed on is newer.
		"between":          {80, 140, false, false, StateAhead, "Debezium has published up to 0/8C and confirmed up to 0/64: what is between is found in Kafka by its id and not sent again", ""},
		"passed on before": {80, 100, false, false, StateAhead, "Debezium has published up to 0/64 and confirmed up to 0/64: what is between is found in Kafka by its id and not sent again", ""},
		"walpost's turn":   {40, 60, true, false, StateBehind, "Debezium's position is 0/3C, and the slot is at 0/64 already: walpost had it since", ""},
		"keep-alives":      {40, 60, false, true, StateBehind, "Debezium's position is 0/3C, and the slot is at 0/64 already: Debezium confirms an idle database's keep-alives (lsn.flush.mode=connector_and_driver)", ""},
		"somebody else":    {40, 60, false, false, StateBehind, "Debezium's position is 0/3C, and the slot is at 0/64 already: something else than Debezium has confirmed what is between", "Debezium's position is 0/3C, and the slot is at 0/64 already: somebody else has read from it, or has advanced it, and what was committed between will not come from the slot"},
	}
	for name, test := range tests {
		s := Stored{Flushed: test.flushed, Delivered: test.delivered}
		finding := ""
		for _, f := range s.compare(&slot.Info{ConfirmedFlushLSN: new(at)}, test.had, test.keepAlives) {
			finding += f.Text
		}
		if s.State != test.state || s.Text != test.text || finding != test.finding {
			t.Errorf("%s:\n got %s: %q, %q\nwant %s: %q, %q", name, s.State, s.Text, finding, test.state, test.text, test.finding)
		}
	}
}

func TestLocate(t *testing.T) {
	t.Parallel()
	set := func(pairs ...string) *connector.Report {
		r := &connector.Report{Entries: []connector.Entry{{Key: "offset.storage.topic", Value: "a-default"}}}
		for _, p := range pairs {
			key, value, _ := strings.Cut(p, "=")
			r.Entries = append(r.Entries, connector.Entry{Key: key, Value: value, Set: true})
		}
		return r
	}
	for _, test := range []struct {
		report *connector.Report
		want   Storage
	}{
		{set(), Storage{}},
		{set("offset.storage.topic=connect-offsets", "offset.storage.partitions=25"), Storage{Topic: "connect-offsets"}},
		{set("offset.storage.file.filename=/var/connect.offsets"), Storage{File: "/var/connect.offsets"}},
		{set("debezium.source.offset.storage.file.filename=a.dat", "debezium.source.offset.storage.file.filename=b.dat"), Storage{File: "b.dat"}},
		{
			set("debezium.source.offset.storage=org.apache.kafka.connect.storage.KafkaOffsetBackingStore", "debezium.source.offset.storage.topic=t", "debezium.source.offset.storage.file.filename=f"),
			Storage{Topic: "t"},
		},
		{
			set("debezium.source.offset.storage=org.apache.kafka.connect.storage.FileOffsetBackingStore", "debezium.source.offset.storage.topic=t", "debezium.source.offset.storage.file.filename=f"),
			Storage{File: "f"},
		},
		{
			set("debezium.source.offset.storage=io.debezium.storage.redis.offset.RedisOffsetBackingStore", "debezium.source.offset.storage.file.filename=f"),
			Storage{Other: "io.debezium.storage.redis.offset.RedisOffsetBackingStore"},
		},
	} {
		if got := Locate(test.report); got != test.want {
			t.Errorf("got %+v, want %+v", got, test.want)
		}
	}
	if KeepAlives(set("lsn.flush.mode=connector")) || !KeepAlives(set("debezium.source.lsn.flush.mode=CONNECTOR_AND_DRIVER")) {
		t.Error("lsn.flush.mode is misread")
	}
}

func TestReadStored(t *testing.T) {
	t.Parallel()
	values := map[string][]byte{
		`["outbox",{"server":"app"}]`:       []byte(`{"lsn_proc":300,"lsn_commit":200,"lsn":300}`),
		`["kafka",{"server":"app"}]`:        []byte(`{"lsn":5}`),
		`["gone",{"server":"app"}]`:         nil,
		`["one",{"server":"two"}]`:          nil,
		`["other",{"server":"two"}]`:        []byte(`{"lsn":7}`),
		`["mysql",{"server":"mysql"}]`:      []byte(`{"pos":7}`),
		`["snapping",{"server":"snap"}]`:    []byte(`{"lsn":7,"snapshot":"INITIAL"}`),
		`["outbox",{"database":"nothing"}]`: []byte(`{"lsn":5}`),
	}
	tests := map[string]struct {
		name, server string
		isServer     bool
		storage      Storage
		err          error
		want         Stored
	}{
		"by name":         {"outbox", "app", false, Storage{Topic: "o"}, nil, Stored{Place: "topic o", Connector: "outbox", State: StateUnknown, Flushed: 200, Delivered: 300}},
		"Debezium Server": {"", "app", true, Storage{Topic: "o"}, nil, Stored{Place: "topic o", Connector: "kafka", State: StateUnknown, Delivered: 5}},
		"deleted":         {"gone", "app", false, Storage{Topic: "o"}, nil, Stored{Place: "topic o", Connector: "gone", State: StateNone, Text: "the stored offset was deleted"}},
		"nothing":         {"new", "app", false, Storage{Topic: "o"}, nil, Stored{Place: "topic o", Connector: "new", State: StateNone, Text: `nothing is stored for connector "new" with topic.prefix "app"`}},
		"the one of two":  {"", "two", false, Storage{Topic: "o"}, nil, Stored{Place: "topic o", Connector: "other", State: StateUnknown, Delivered: 7}},
		"in a snapshot":   {"", "snap", false, Storage{Topic: "o"}, nil, Stored{Place: "topic o", Connector: "snapping", State: StateUnknown, Delivered: 7, Snapshot: true}},
		"another one's":   {"mysql", "mysql", false, Storage{Topic: "o"}, nil, Stored{Place: "topic o", Connector: "mysql", State: StateUnknown, Text: `the offset of connector "mysql" cannot be read: it has no LSN`}},
		"no Kafka":        {"outbox", "app", false, Storage{Topic: "o"}, errors.New("no brokers are named"), Stored{Place: "topic o", Connector: "outbox", State: StateUnknown, Text: "no brokers are named"}},
		"no file":         {"outbox", "app", false, Storage{File: "f"}, nil, Stored{Place: "file f", Connector: "outbox", State: StateUnknown, Text: "open f: file does not exist"}},
		"Redis":           {"outbox", "app", false, Storage{Other: "R"}, nil, Stored{Place: "R", Connector: "outbox", State: StateUnknown, Text: "walpost does not read this kind of storage"}},
		"nowhere":         {"outbox", "app", false, Storage{}, nil, Stored{Connector: "outbox", State: StateUnknown, Text: "no file says where it is: name the worker's with --worker, or --offset-file or --offset-topic"}},
	}
	for name, test := range tests {
		got, _ := readStored(t.Context(), &Options{
			Spec:    &connector.Spec{Name: test.name, Server: test.isServer, Router: router.Options{TopicPrefix: test.server}},
			Storage: test.storage,
			ReadFile: func(path string) ([]byte, error) {
				return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
			},
			ReadTopic: func(_ context.Context, topic string, keep func([]byte) bool) (map[string][]byte, error) {
				if topic != "o" {
					return nil, fmt.Errorf("asked for %q", topic)
				}
				found := map[string][]byte{}
				for k, v := range values {
					if keep([]byte(k)) {
						found[k] = v
					}
				}
				return found, test.err
			},
		})
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
	}
}
