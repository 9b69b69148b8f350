package router

import (
	"errors"
	"time"

	"github.com/walpost/walpost/internal/debezium/connect"
	"github.com/walpost/walpost/sink"
)

// heartbeat makes the records of Debezium's HeartbeatImpl.
type heartbeat struct {
	topic              string
	server             bool
	keyOf, valueOf     connect.Converter
	key, value         *connect.Schema
	name               []connect.Value
	stamp              []connect.Value
	keyBytes, valBytes []byte
}

// errNoHeartbeat is the answer of a Router without a topic for heartbeats.
var errNoHeartbeat = errors.New("router: there is no topic for heartbeats")

func newHeartbeat(o *Options) (*heartbeat, error) {
	h := &heartbeat{
		topic: o.HeartbeatTopic, server: o.Server, keyOf: o.Key, valueOf: o.Value,
		key:      structure("io.debezium.connector.common.ServerNameKey", false, field1("serverName", connect.String, false)),
		value:    structure("io.debezium.connector.common.Heartbeat", false, field1("ts_ms", connect.Int64, false)),
		name:     []connect.Value{{Valid: true, Bytes: []byte(o.TopicPrefix)}},
		stamp:    []connect.Value{{Valid: true}},
		keyBytes: []byte{}, valBytes: []byte{},
	}
	if fault, way := topicFault(o.HeartbeatTopic); fault != "" {
		return nil, &OptionError{Name: "topic.heartbeat.prefix", Text: fault, way: way}
	}
	var rec sink.Record
	if err := h.record(o.Now(), &rec); err != nil {
		return nil, &OptionError{
			Name: "heartbeat.interval.ms", Text: "the converters do not take heartbeats: " + err.Error(),
			way: "set heartbeat.interval.ms to 0, which walpost does without, or give BinaryDataConverter a delegate.converter.type",
		}
	}
	return h, nil
}

// Heartbeat makes the record that Debezium sends every heartbeat.interval.ms. What
// rec points to is valid until the next call.
func (r *Router) Heartbeat(now time.Time, rec *sink.Record) error {
	if r.heartbeat == nil {
		return errNoHeartbeat
	}
	return r.heartbeat.record(now, rec)
}

func (h *heartbeat) record(now time.Time, rec *sink.Record) error {
	*rec = sink.Record{Topic: h.topic, Headers: rec.Headers[:0], Time: now, Tag: rec.Tag}
	if h.server {
		rec.Partition = sink.ByKey
	}
	h.stamp[0].Int = now.UnixMilli()
	var err error
	if rec.Key, h.keyBytes, err = whole(h.keyOf, h.keyBytes, h.key, connect.Value{Valid: true, List: h.name}); err != nil {
		return err
	}
	rec.Value, h.valBytes, err = whole(h.valueOf, h.valBytes, h.value, connect.Value{Valid: true, List: h.stamp})
	return err
}

// whole converts into a buffer of its own.
func whole(c connect.Converter, buf []byte, s *connect.Schema, v connect.Value) (out, kept []byte, err error) {
	out, null, err := c.Convert(buf[:0], s, v)
	switch {
	case err != nil:
		return nil, buf, err
	case null:
		return nil, buf, nil
	case cap(out) > keepBytes:
		return out, buf, nil
	}
	return out, out, nil
}

// structure is one of Debezium's schemas, which all have version 1.
func structure(name string, optional bool, fields ...connect.Field) *connect.Schema {
	version := int32(1)
	return &connect.Schema{Type: connect.Struct, Optional: optional, Name: name, Version: &version, Fields: fields}
}

func field1(name string, t connect.Type, optional bool) connect.Field {
	return connect.Field{Name: name, Schema: &connect.Schema{Type: t, Optional: optional}}
}
