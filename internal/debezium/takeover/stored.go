package takeover

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pglogrepl"

	"github.com/walpost/walpost/internal/debezium/connector"
	"github.com/walpost/walpost/internal/debezium/offsets"
	"github.com/walpost/walpost/slot"
)

// Storage says where Debezium stores its position. At most one is set.
type Storage struct {
	File  string // of a standalone worker, or of Debezium Server
	Topic string // of Connect's workers
	Other string // a class that keeps it where it cannot be read from here
}

// Locate finds the storage in what was read of the connector's and the worker's
// files.
func Locate(report *connector.Report) Storage {
	file, topic := setting(report, "offset.storage.file.filename"), setting(report, "offset.storage.topic")
	switch class := setting(report, "offset.storage"); {
	case strings.HasSuffix(class, ".FileOffsetBackingStore"):
		return Storage{File: file}
	case strings.HasSuffix(class, ".KafkaOffsetBackingStore"):
		return Storage{Topic: topic}
	case class != "":
		return Storage{Other: class}
	case topic != "":
		return Storage{Topic: topic}
	}
	return Storage{File: file}
}

// KeepAlives says that Debezium confirms an idle server's keep-alives, so that the
// slot can be ahead of what it has stored.
func KeepAlives(report *connector.Report) bool {
	return strings.EqualFold(setting(report, "lsn.flush.mode"), "connector_and_driver")
}

// setting gives the value of a key that is set; one that is set again counts the
// last time.
func setting(report *connector.Report, key string) string {
	value := ""
	for _, e := range report.Entries {
		if e.Set && strings.TrimPrefix(e.Key, "debezium.source.") == key {
			value = strings.TrimSpace(e.Value)
		}
	}
	return value
}

// lookupTimeout bounds how long the offsets topic is read: the plan goes on
// without.
const lookupTimeout = 20 * time.Second

// serverConnector is what Debezium Server calls its connector: the type of its
// sink.
const serverConnector = "kafka"

// readStored reads the position. What keeps it from that is said in the result.
func readStored(ctx context.Context, opt *Options) (Stored, *offsets.Offset) {
	key := offsets.Key{Connector: opt.Spec.Name, Server: opt.Spec.Router.TopicPrefix}
	if opt.Spec.Server {
		key.Connector = serverConnector
	}
	s := Stored{State: StateUnknown, Connector: key.Connector}
	var found *offsets.Offset
	var err error
	switch {
	case opt.Storage.File != "":
		s.Place = "file " + opt.Storage.File
		var data []byte
		if data, err = opt.ReadFile(opt.Storage.File); err == nil {
			found, err = offsets.File(data, key)
		}
	case opt.Storage.Topic != "":
		s.Place = "topic " + opt.Storage.Topic
		found, err = fromTopic(ctx, opt, key)
	case opt.Storage.Other != "":
		s.Place = opt.Storage.Other
		s.Text = "walpost does not read this kind of storage"
		return s, nil
	default:
		s.Text = "no file says where it is: name the worker's with --worker, or --offset-file or --offset-topic"
		return s, nil
	}
	switch {
	case err != nil:
		s.Text = err.Error()
	case found == nil:
		s.State, s.Text = StateNone, fmt.Sprintf("nothing is stored for connector %q with topic.prefix %q", key.Connector, key.Server)
	case found.Deleted:
		s.State, s.Connector, s.Text = StateNone, found.Connector, "the stored offset was deleted"
	default:
		s.Connector, s.Flushed, s.Delivered, s.Snapshot = found.Connector, found.Flushed(), found.Delivered(), found.Snapshot
		return s, found
	}
	return s, nil
}

func fromTopic(ctx context.Context, opt *Options, key offsets.Key) (*offsets.Offset, error) {
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	values, err := opt.ReadTopic(ctx, opt.Storage.Topic, func(k []byte) bool {
		_, ok := key.Matches(k)
		return ok
	})
	if err != nil {
		return nil, err
	}
	var found *offsets.Offset
	for k, value := range values {
		name, _ := key.Matches([]byte(k))
		o, err := offsets.Value(name, value)
		if err != nil {
			return nil, err
		}
		if found != nil && !found.Deleted {
			if !o.Deleted {
				return nil, fmt.Errorf("several connectors with topic.prefix %q have stored offsets, such as %q and %q", key.Server, found.Connector, name)
			}
			continue
		}
		found = o
	}
	return found, nil
}

// compare says what the stored position means for the slot. A walpost that had
// the slot since explains a slot that is ahead, and so does a Debezium that
// confirms the server's keep-alives.
func (s *Stored) compare(info *slot.Info, had, keepAlives bool) []Finding {
	if info.ConfirmedFlushLSN == nil {
		return nil
	}
	at := *info.ConfirmedFlushLSN
	switch {
	case s.Snapshot:
		s.State, s.Text = StateUnknown, "it was stored in the middle of a snapshot"
		return nil
	case s.Delivered < at && s.Flushed < at:
		return s.behind(at, had, keepAlives)
	case s.Flushed == at && s.Delivered <= at:
		s.State, s.Text = StateAgrees, "it is the slot's"
	case s.Flushed == at:
		s.State = StateAgrees
		s.Text = fmt.Sprintf("it is the slot's; what Debezium has published behind it, up to %s at least, is found in Kafka by its id and not sent again", s.Delivered)
	default:
		s.State = StateAhead
		s.Text = fmt.Sprintf("Debezium has published up to %s and confirmed up to %s: what is between is found in Kafka by its id and not sent again",
			s.Delivered, at)
	}
	return nil
}

func (s *Stored) behind(at pglogrepl.LSN, had, keepAlives bool) []Finding {
	s.State = StateBehind
	between := fmt.Sprintf("Debezium's position is %s, and the slot is at %s already", s.Delivered, at)
	switch {
	case had:
		s.Text = between + ": walpost had it since"
		return nil
	case keepAlives:
		s.Text = between + ": Debezium confirms an idle database's keep-alives (lsn.flush.mode=connector_and_driver)"
		return nil
	}
	s.Text = between + ": something else than Debezium has confirmed what is between"
	return []Finding{{
		LevelFinding,
		between + ": somebody else has read from it, or has advanced it, and what was committed between will not come from the slot",
		"Debezium would go on from the slot's position too, without a word; if those events are not in Kafka, publish them from the table",
	}}
}
