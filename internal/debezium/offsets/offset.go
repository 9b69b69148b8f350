package offsets

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/jackc/pglogrepl"
)

// maxFile bounds the file that is read: it holds one entry of some hundred bytes
// for each connector.
const maxFile = 64 << 20

// maxJSON bounds one key or value.
const maxJSON = 1 << 20

// Key names whose offset is wanted.
type Key struct {
	Connector string // the connector's name; empty: any
	Server    string // topic.prefix
}

// Offset is a position that Debezium has stored. A zero LSN is one that is not in
// it.
type Offset struct {
	Connector string // whose it is
	// Deleted says that somebody has removed the offset.
	Deleted bool

	LSN       pglogrepl.LSN // of the last change
	Processed pglogrepl.LSN // lsn_proc: the last change that was passed on
	Commit    pglogrepl.LSN // lsn_commit: end of the last transaction before it
	// Snapshot says that it was stored in the middle of a snapshot, from which
	// Debezium begins anew.
	Snapshot bool
}

// Flushed is the position that Debezium reports to the slot when it has stored
// this offset.
func (o *Offset) Flushed() pglogrepl.LSN {
	if o.Commit != 0 {
		return o.Commit
	}
	return o.Processed
}

// Delivered is the last position whose event Debezium is known to have published.
func (o *Offset) Delivered() pglogrepl.LSN { return max(o.Commit, o.Processed, o.LSN) }

// File finds the offset in the content of a worker's file. It is nil when there is
// none. An empty file is a worker that has stored nothing.
func File(data []byte, want Key) (*Offset, error) {
	if len(data) == 0 {
		return nil, nil
	}
	if len(data) > maxFile {
		return nil, &Error{"larger than 64 MiB", "name the file of offset.storage.file.filename"}
	}
	entries, err := javaMap(data)
	if err != nil {
		return nil, &Error{"not a file of Kafka Connect's offsets: " + err.Error(), "name the file of offset.storage.file.filename"}
	}
	var found, near *Offset
	others := 0
	for _, e := range entries {
		name, ok := match(e.key, want.Server)
		if !ok {
			continue
		}
		o, err := Value(name, e.value)
		if err != nil {
			return nil, err
		}
		if name == want.Connector {
			found = o
			continue
		}
		near = o
		others++
	}
	switch {
	case found != nil:
		return found, nil
	case others > 1:
		return nil, &Error{
			fmt.Sprintf("%d connectors with topic.prefix %q have stored offsets here, and none has the name %q", others, want.Server, want.Connector),
			"give the connector's file the name that it has in Kafka Connect",
		}
	}
	return near, nil // a file without a name is told by its server alone
}

// Matches says whether a record of the offsets topic belongs to a connector
// with this topic.prefix, and gives that connector's name.
func (k Key) Matches(key []byte) (connector string, ok bool) {
	name, ok := match(key, k.Server)
	return name, ok && (k.Connector == "" || k.Connector == name)
}

// match reads ["name",{"server":"prefix"}].
func match(key []byte, server string) (name string, ok bool) {
	var parts []json.RawMessage
	if unmarshal(key, &parts) != nil || len(parts) != 2 {
		return "", false
	}
	var partition map[string]any
	if json.Unmarshal(parts[0], &name) != nil || json.Unmarshal(parts[1], &partition) != nil {
		return "", false
	}
	s, ok := partition["server"].(string)
	return name, ok && s == server
}

// Value reads the value of a record of the offsets topic; nil is a deleted one.
func Value(connector string, value []byte) (*Offset, error) {
	o := &Offset{Connector: connector, Deleted: value == nil}
	if value == nil {
		return o, nil
	}
	unreadable := func(what string) error {
		return &Error{
			fmt.Sprintf("the offset of connector %q cannot be read: %s", connector, what),
			"it is no offset of Debezium's PostgreSQL connector: check topic.prefix and the connector's name",
		}
	}
	var fields map[string]json.RawMessage
	if err := unmarshal(value, &fields); err != nil {
		return nil, unreadable("its value is not a JSON object")
	}
	if fields == nil {
		o.Deleted = true
		return o, nil
	}
	for _, f := range []struct {
		name string
		into *pglogrepl.LSN
	}{{"lsn", &o.LSN}, {"lsn_proc", &o.Processed}, {"lsn_commit", &o.Commit}} {
		raw, ok := fields[f.name]
		if !ok || string(raw) == "null" {
			continue
		}
		// Java's long; the upper half is never reached.
		n, err := strconv.ParseInt(string(bytes.Trim(raw, `"`)), 10, 64)
		if err != nil || n < 0 {
			return nil, unreadable(f.name + " is no number")
		}
		*f.into = pglogrepl.LSN(n)
	}
	o.Snapshot = isOn(fields["snapshot"]) && !isOn(fields["snapshot_completed"]) && !isOn(fields["last_snapshot_record"])
	if o.Delivered() == 0 && !o.Snapshot {
		return nil, unreadable("it has no LSN")
	}
	return o, nil
}

// isOn reads Debezium's booleans, which some versions write as text, and its
// kinds of snapshots, which newer ones write in their place.
func isOn(raw json.RawMessage) bool {
	switch string(raw) {
	case "", "null", "false", `"false"`, `"FALSE"`:
		return false
	}
	return true
}

// unmarshal reads JSON that may stand in an envelope of schema and payload.
func unmarshal(data []byte, into any) error {
	if len(data) > maxJSON {
		return fmt.Errorf("larger than %d bytes", maxJSON)
	}
	var envelope struct {
		Payload json.RawMessage `json:"payload"`
	}
	if json.Unmarshal(data, &envelope) == nil && envelope.Payload != nil {
		data = envelope.Payload
	}
	return json.Unmarshal(data, into)
}
