package router

import (
	"encoding/base64"
	"encoding/hex"
	"strconv"
	"strings"
	"time"

	"github.com/walpost/walpost/decoder"
	"github.com/walpost/walpost/internal/debezium/connect"
	"github.com/walpost/walpost/internal/event"
	"github.com/walpost/walpost/sink"
)

// messages makes the records of Debezium's LogicalDecodingMessageMonitor.
type messages struct {
	topic              string
	mode               string // binary.handling.mode
	key, value         *connect.Schema
	prefix             []connect.Value
	list               []connect.Value // the value; its parts are source and message
	source, message    []connect.Value
	commitLSN          uint64    // end of the newest transaction; 0: none was seen
	commitTime         time.Time // of the newest transaction
	sequence, content  []byte
	keyBytes, valBytes []byte
}

// Places in the source block of Debezium 3.6.
const (
	sourceVersion = iota
	sourceConnector
	sourceName
	sourceMillis
	sourceSnapshot
	sourceDatabase
	sourceSequence
	sourceMicros
	sourceNanos
	sourceSchema
	sourceTable
	sourceXID
	sourceLSN
	sourceXmin
	sourceOrigin
	sourceOriginLSN
	sourceFields
)

func newMessages(o *Options) *messages {
	mode := strings.ToLower(javaTrim(o.Modes.Binary))
	content := connect.Bytes
	if mode == "base64" || mode == "base64-url-safe" || mode == "hex" {
		content = connect.String
	}
	never := connect.Value{Valid: true, Bytes: []byte("false")}
	one := int32(1)
	snapshot := &connect.Schema{
		Type: connect.String, Optional: true, Name: "io.debezium.data.Enum", Version: &one, Default: &never,
		Parameters: []connect.Parameter{{Name: "allowed", Value: "true,first,first_in_data_collection,last_in_data_collection,last,false,incremental"}},
	}
	source := structure("io.debezium.connector.postgresql.Source", false,
		field1("version", connect.String, false), field1("connector", connect.String, false), field1("name", connect.String, false),
		field1("ts_ms", connect.Int64, false), connect.Field{Name: "snapshot", Schema: snapshot}, field1("db", connect.String, false),
		field1("sequence", connect.String, true), field1("ts_us", connect.Int64, true), field1("ts_ns", connect.Int64, true),
		field1("schema", connect.String, false), field1("table", connect.String, false), field1("txId", connect.Int64, true),
		field1("lsn", connect.Int64, true), field1("xmin", connect.Int64, true), field1("origin", connect.String, true),
		field1("origin_lsn", connect.Int64, true))
	transaction := structure("event.block", true,
		field1("id", connect.String, false), field1("total_order", connect.Int64, false), field1("data_collection_order", connect.Int64, false))
	m := &messages{
		topic: o.TopicPrefix + ".message", mode: mode,
		key: structure("io.debezium.connector.postgresql.MessageKey", false, field1("prefix", connect.String, true)),
		value: structure("io.debezium.connector.postgresql.MessageValue", false,
			field1("op", connect.String, false), field1("ts_ms", connect.Int64, true), connect.Field{Name: "source", Schema: source},
			connect.Field{Name: "transaction", Schema: transaction},
			connect.Field{Name: "message", Schema: structure("io.debezium.connector.postgresql.Message", false,
				field1("prefix", connect.String, true), field1("content", content, true))}),
		prefix: make([]connect.Value, 1), list: make([]connect.Value, 5),
		source: make([]connect.Value, sourceFields), message: make([]connect.Value, 2),
		keyBytes: []byte{}, valBytes: []byte{},
	}
	word := func(s string) connect.Value { return connect.Value{Valid: true, Bytes: []byte(s)} }
	m.list[0] = word("m")
	m.source[sourceVersion] = word(o.Version)
	m.source[sourceConnector] = word(o.ConnectorName)
	m.source[sourceName] = word(o.TopicPrefix)
	m.source[sourceDatabase] = word(o.DatabaseName)
	m.source[sourceSchema], m.source[sourceTable] = word(""), word("")
	return m
}

// Observe tells the Router of every change that the stream has, as far as it
// concerns logical messages: their source block names the transaction before.
func (r *Router) Observe(c *decoder.Change) {
	m := r.messages
	if m == nil || c.Transaction == nil {
		return
	}
	m.commitTime = c.Transaction.CommitTime
	if c.Kind == decoder.KindCommit {
		m.commitLSN = uint64(c.Transaction.EndLSN)
	}
}

// Message makes a record of a logical message; false when there are no topics for
// them. What rec points to is valid until the next call, and no longer than c.
func (r *Router) Message(c *decoder.Change, rec *sink.Record) (bool, error) {
	m := r.messages
	if m == nil || c.Kind != decoder.KindMessage {
		return false, nil
	}
	now := r.opt.Now()
	*rec = sink.Record{Topic: m.topic, Partition: sink.ByKey, Headers: rec.Headers[:0], Time: now, Tag: rec.Tag}
	m.fill(c, now)
	var err error
	if rec.Key, m.keyBytes, err = whole(r.opt.Key, m.keyBytes, m.key, connect.Value{Valid: true, List: m.prefix}); err == nil {
		rec.Value, m.valBytes, err = whole(r.opt.Value, m.valBytes, m.value, connect.Value{Valid: true, List: m.list})
	}
	if err == nil {
		if fault, way := topicFault(m.topic); fault != "" {
			return false, m.reject(c, fault, way)
		}
		return true, nil
	}
	return false, m.reject(c, err.Error(), hint(err, "set message.prefix.exclude.list to .*"))
}

func (m *messages) reject(c *decoder.Change, text, way string) error {
	r := &event.Reject{Table: "(logical message " + strconv.Quote(c.Message.Prefix) + ")", LSN: c.Message.LSN, Text: text, Way: way}
	if c.Transaction != nil {
		r.LSN = c.Transaction.CommitLSN
	}
	return r
}

// fill sets what differs from one message to the next.
func (m *messages) fill(c *decoder.Change, now time.Time) {
	number := func(n int64) connect.Value { return connect.Value{Valid: true, Int: n} }
	m.source[sourceXID] = connect.Value{}
	lsn := uint64(c.Message.LSN)
	if t := c.Transaction; t != nil {
		m.commitTime = t.CommitTime
		m.source[sourceXID] = number(int64(t.XID))
	} else {
		m.commitLSN = lsn // it is its own transaction, and committed before it is sent
	}
	at := m.commitTime
	if at.IsZero() {
		at = now
	}
	m.source[sourceMillis] = number(at.UnixMilli())
	m.source[sourceMicros] = number(at.UnixMicro())
	m.source[sourceNanos] = number(at.UnixNano())
	m.source[sourceLSN] = number(int64(lsn))
	m.sequence = append(m.sequence[:0], '[')
	if m.commitLSN == 0 {
		m.sequence = append(m.sequence, "null"...)
	} else {
		m.sequence = appendQuoted(m.sequence, m.commitLSN)
	}
	m.sequence = append(m.sequence, ',')
	m.sequence = append(appendQuoted(m.sequence, lsn), ']')
	m.source[sourceSequence] = connect.Value{Valid: true, Bytes: m.sequence}
	m.prefix[0] = connect.Value{Valid: true, Bytes: []byte(c.Message.Prefix)}
	m.message[0], m.message[1] = m.prefix[0], connect.Value{Valid: true, Bytes: m.encode(c.Message.Content)}
	m.list[1] = number(now.UnixMilli())
	m.list[2] = connect.Value{Valid: true, List: m.source}
	m.list[4] = connect.Value{Valid: true, List: m.message}
}

func appendQuoted(b []byte, n uint64) []byte {
	return append(strconv.AppendUint(append(b, '"'), n, 10), '"')
}

func (m *messages) encode(content []byte) []byte {
	switch m.mode {
	case "base64":
		m.content = base64.StdEncoding.AppendEncode(m.content[:0], content)
	case "base64-url-safe":
		m.content = base64.URLEncoding.AppendEncode(m.content[:0], content)
	case "hex":
		m.content = hex.AppendEncode(m.content[:0], content)
	default:
		return content
	}
	return m.content
}
