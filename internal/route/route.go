package route

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/walpost/walpost/internal/event"
	"github.com/walpost/walpost/sink"
)

// maxTopics bounds the topic names that are kept. Beyond it all are forgotten:
// an application with more topics pays an allocation now and then.
const maxTopics = 1 << 14

// Options of a Router. The zero value routes by aggregate type, to any topic.
type Options struct {
	// Topic is the template; DefaultTopic when empty.
	Topic string
	// Allow lists the topics that may be written to, as names or as patterns
	// with *, ? and [a-z]; any topic when it is empty.
	Allow []string
}

// Router makes records of events. It is not safe for concurrent use.
type Router struct {
	parts  []part
	allow  Allow
	topics map[string]string
	name   []byte
}

// New checks the options.
func New(o Options) (*Router, error) {
	if o.Topic == "" {
		o.Topic = DefaultTopic
	}
	parts, err := parseTemplate(o.Topic)
	if err != nil {
		return nil, err
	}
	allow, err := NewAllow(o.Allow)
	if err != nil {
		return nil, err
	}
	r := &Router{parts: parts, allow: allow, topics: make(map[string]string)}
	if name, fixed := r.fixed(); fixed {
		if text, _ := checkTopic(string(name)); text != "" {
			return nil, &OptionError{fmt.Sprintf("topic template %q: %s", o.Topic, text), "a topic's name has 1 to 249 of the characters a-z A-Z 0-9 . _ -, and does not begin with __"}
		}
		if !r.allow.Has(string(name)) {
			return nil, &OptionError{fmt.Sprintf("topic template %q: the topic is not among the allowed ones", o.Topic), "add it to the allowed topics: " + strings.Join(o.Allow, ", ")}
		}
	}
	return r, nil
}

// fixed gives the topic of a template without placeholders.
func (r *Router) fixed() ([]byte, bool) {
	var name []byte
	for i := range r.parts {
		if r.parts[i].field != literal {
			return nil, false
		}
		name = append(name, r.parts[i].literal...)
	}
	return name, true
}

// Route fills rec from ev; of its Tag only the Source. The record's slices are
// those of the event, but for Headers, which belongs to rec and is reused. The
// error is an *event.Reject, and rec is then not to be used.
func (r *Router) Route(ev *event.Event, rec *sink.Record) error {
	topic, err := r.topic(ev)
	if err != nil {
		return err
	}
	partition, err := r.partition(ev)
	if err != nil {
		return err
	}
	rec.Topic, rec.Partition = topic, partition
	rec.Key, rec.Value, rec.Time = ev.AggregateID, ev.Payload, ev.Time
	rec.Headers = append(rec.Headers[:0], sink.Header{Name: "id", Value: ev.ID})
	for i := range ev.Headers {
		rec.Headers = append(rec.Headers, sink.Header{Name: ev.Headers[i].Name, Value: ev.Headers[i].Value})
	}
	rec.Tag.Source = ev.Source
	return nil
}

func (r *Router) topic(ev *event.Event) (string, error) {
	r.name = r.name[:0]
	for i := range r.parts {
		p := &r.parts[i]
		switch p.field {
		case literal:
			r.name = append(r.name, p.literal...)
		case table:
			r.name = append(r.name, ev.Table...)
		default:
			v := p.value(ev)
			if len(v) == 0 {
				return "", reject(ev, fmt.Sprintf("no topic: the event has no value for %q", p.String()),
					"the topic template needs it of every event; the application must write it, or the template do without")
			}
			// A value of any size must not make this buffer as large.
			r.name = append(r.name, v[:min(len(v), MaxTopic+1)]...)
		}
	}
	if name, known := r.topics[string(r.name)]; known {
		return name, nil
	}
	name := string(r.name)
	if text, way := checkTopic(name); text != "" {
		return "", reject(ev, text, way)
	}
	if !r.allow.Has(name) {
		bad := r.allow.Reject(name)
		bad.Table, bad.EventID = ev.Table, string(ev.ID)
		return "", bad
	}
	if len(r.topics) >= maxTopics {
		clear(r.topics)
	}
	r.topics[name] = name
	return name, nil
}

func (r *Router) partition(ev *event.Event) (int32, error) {
	if ev.Partition == nil {
		return sink.ByKey, nil
	}
	n, ok := parsePartition(ev.Partition)
	if !ok {
		return 0, reject(ev, fmt.Sprintf("%s is not a partition's number", quote(ev.Partition)),
			"the partition column holds 0 or more, or NULL for the partition of the key")
	}
	return n, nil
}

func parsePartition(text []byte) (int32, bool) {
	n := int64(0)
	for _, c := range text {
		if c < '0' || c > '9' {
			return 0, false
		}
		if n = n*10 + int64(c-'0'); n > 1<<31-1 {
			return 0, false
		}
	}
	return int32(n), len(text) > 0
}

func reject(ev *event.Event, text, way string) *event.Reject {
	return &event.Reject{Table: ev.Table, EventID: string(ev.ID), Text: text, Way: way}
}

func quote(b []byte) string { return strconv.Quote(string(b[:min(len(b), 40)])) }
