package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/walpost/walpost/internal/testkit/topic"
)

// record is one on Kafka. A nil key or value is Kafka's null.
type record struct {
	Topic     string   `json:"topic"`
	Partition int      `json:"partition"`
	Offset    int64    `json:"offset"`
	Timestamp int64    `json:"timestamp"`
	Key       []byte   `json:"key"`
	Headers   []header `json:"headers"`
	Value     []byte   `json:"value"`
}

// header is a pair in JSON: name, and base64 or null.
type header struct {
	name  string
	value []byte
}

func (h *header) UnmarshalJSON(data []byte) error {
	var pair []json.RawMessage
	if err := json.Unmarshal(data, &pair); err != nil {
		return err
	}
	if len(pair) != 2 {
		return errors.New("a header is a pair of name and value")
	}
	return errors.Join(json.Unmarshal(pair[0], &h.name), json.Unmarshal(pair[1], &h.value))
}

func (h header) MarshalJSON() ([]byte, error) { return plainJSON([]any{h.name, h.value}) }

// plainJSON is JSON on one line without escapes for HTML.
func plainJSON(v any) ([]byte, error) {
	var buf bytes.Buffer
	e := json.NewEncoder(&buf)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), err
}

func (r *record) header(name string) ([]byte, bool) {
	for _, h := range r.Headers {
		if h.name == name {
			return h.value, true
		}
	}
	return nil, false
}

// id is the value of the event's id header, which can come more than once: the
// event id is the first.
func (r *record) id() string {
	value, _ := r.header("id")
	return string(value)
}

func fromKafka(list []topic.Record) []record {
	records := make([]record, len(list))
	for i, r := range list {
		records[i] = record{
			Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, Timestamp: r.Time.UnixMilli(), Key: r.Key, Value: r.Value,
			Headers: []header{},
		}
		for _, h := range r.Headers {
			records[i].Headers = append(records[i].Headers, header{h.Key, h.Value})
		}
	}
	sortRecords(records)
	return records
}

func sortRecords(records []record) {
	slices.SortStableFunc(records, func(a, b record) int {
		return cmp.Or(strings.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition), cmp.Compare(a.Offset, b.Offset))
	})
}

// text is how bytes are shown and kept in our form: null, a string where they are
// UTF-8, {"base64": …} else; and long runs of one character as {"repeat": …}.
type text []byte

type repeat struct {
	Repeat string `json:"repeat"`
	Times  int    `json:"times"`
}

// longRun is worth its own part.
const longRun = 256

func (t text) MarshalJSON() ([]byte, error) {
	switch {
	case t == nil:
		return []byte("null"), nil
	case !utf8.Valid(t):
		return json.Marshal(map[string][]byte{"base64": t})
	}
	var parts []any
	begun := 0
	for i := 0; i < len(t); {
		n := 1
		for i+n < len(t) && t[i+n] == t[i] {
			n++
		}
		if n >= longRun && t[i] < utf8.RuneSelf {
			if begun < i {
				parts = append(parts, string(t[begun:i]))
			}
			parts = append(parts, repeat{string(t[i : i+1]), n})
			begun = i + n
		}
		i += n
	}
	if parts == nil {
		return plainJSON(string(t))
	}
	if begun < len(t) {
		parts = append(parts, string(t[begun:]))
	}
	return plainJSON(parts)
}

func (t *text) UnmarshalJSON(data []byte) error {
	var s string
	var coded struct {
		Base64 []byte `json:"base64"`
	}
	switch {
	case string(data) == "null":
		*t = nil
		return nil
	case data[0] == '"':
		err := json.Unmarshal(data, &s)
		*t = append(text{}, s...)
		return err
	case data[0] == '{':
		err := json.Unmarshal(data, &coded)
		*t = coded.Base64
		return err
	}
	var parts []json.RawMessage
	if err := json.Unmarshal(data, &parts); err != nil {
		return err
	}
	*t = text{}
	for _, p := range parts {
		var r repeat
		if p[0] != '{' {
			r.Times = 1
			if err := json.Unmarshal(p, &r.Repeat); err != nil {
				return err
			}
		} else if err := json.Unmarshal(p, &r); err != nil {
			return err
		}
		*t = append(*t, strings.Repeat(r.Repeat, r.Times)...)
	}
	return nil
}

// compact is a record in our form. The timestamp is left out where it is the
// connector's clock.
type compact struct {
	Topic     string   `json:"topic"`
	Partition int      `json:"partition"`
	Timestamp *int64   `json:"timestamp,omitempty"`
	Key       text     `json:"key"`
	Headers   [][]text `json:"headers"`
	Value     text     `json:"value"`
}

func (r *record) compact(clock bool) compact {
	c := compact{Topic: r.Topic, Partition: r.Partition, Key: r.Key, Value: r.Value, Headers: [][]text{}}
	if !clock {
		c.Timestamp = &r.Timestamp
	}
	for _, h := range r.Headers {
		c.Headers = append(c.Headers, []text{text(h.name), h.value})
	}
	return c
}

func (c *compact) record() (record, error) {
	r := record{Topic: c.Topic, Partition: c.Partition, Timestamp: clockTime, Key: c.Key, Value: c.Value, Headers: []header{}}
	if c.Timestamp != nil {
		r.Timestamp = *c.Timestamp
	}
	for _, h := range c.Headers {
		if len(h) != 2 {
			return record{}, fmt.Errorf("a header of %d parts: it is a pair of name and value", len(h))
		}
		r.Headers = append(r.Headers, header{string(h[0]), h[1]})
	}
	return r, nil
}

// show is a record for people.
func (r *record) show() string {
	if r == nil {
		return "(no record)"
	}
	line, err := plainJSON(r.compact(false))
	if err != nil {
		return err.Error()
	}
	return string(line)
}
