package route

import (
	"fmt"
	"strings"

	"github.com/walpost/walpost/internal/event"
)

// DefaultTopic is the template that is used when none is given.
const DefaultTopic = "outbox.event.<aggregate_type>"

// OptionError is a fault in the options.
type OptionError struct {
	Text string
	Way  string
}

func (e *OptionError) Error() string { return e.Text }

// Hint says what to do about it.
func (e *OptionError) Hint() string { return e.Way }

// part of a template: a literal, or a field with, for a header, its name.
type part struct {
	literal string
	field   field
	header  string
}

type field uint8

const (
	literal field = iota
	aggregateType
	eventType
	table
	header
)

const placeholders = "placeholders are <aggregate_type>, <event_type>, <table> and <header:NAME>"

// parseTemplate takes a template apart, and sees that its literals can be part
// of a topic's name.
func parseTemplate(s string) ([]part, error) {
	bad := func(format string, args ...any) error {
		return &OptionError{fmt.Sprintf("topic template %q: ", s) + fmt.Sprintf(format, args...), placeholders}
	}
	if strings.HasPrefix(s, "__") {
		return nil, &OptionError{fmt.Sprintf("topic template %q: names that begin with __ are reserved for Kafka itself", s), "choose another prefix"}
	}
	var parts []part
	length := 0
	for rest := s; rest != ""; {
		open := strings.IndexByte(rest, '<')
		if open != 0 {
			text := rest
			if open > 0 {
				text = rest[:open]
			}
			for i := range len(text) {
				if !TopicByte(text[i]) {
					return nil, bad("%q cannot be in a topic's name", text[i:i+1])
				}
			}
			length += len(text)
			parts = append(parts, part{literal: text})
			rest = rest[len(text):]
			continue
		}
		end := strings.IndexByte(rest, '>')
		if end < 0 {
			return nil, bad("%q has no closing >", rest)
		}
		name := rest[1:end]
		rest = rest[end+1:]
		switch headerName, isHeader := strings.CutPrefix(name, "header:"); {
		case name == "aggregate_type":
			parts = append(parts, part{field: aggregateType})
		case name == "event_type":
			parts = append(parts, part{field: eventType})
		case name == "table":
			parts = append(parts, part{field: table})
		case isHeader && headerName == "id":
			return nil, bad("<header:id> would make a topic for each event")
		case isHeader && headerName != "":
			parts = append(parts, part{field: header, header: headerName})
		default:
			return nil, bad("unknown placeholder %q", "<"+name+">")
		}
	}
	if length > MaxTopic {
		return nil, bad("longer than the %d characters that a topic's name may have", MaxTopic)
	}
	return parts, nil
}

// value gives what a placeholder stands for, nil when the event does not have it.
func (p *part) value(ev *event.Event) []byte {
	switch p.field {
	case aggregateType:
		return ev.AggregateType
	case eventType:
		return ev.Type
	case header:
		for i := range ev.Headers {
			if ev.Headers[i].Name == p.header {
				return ev.Headers[i].Value
			}
		}
	}
	return nil
}

// String gives the part as the template has it.
func (p *part) String() string {
	switch p.field {
	case aggregateType:
		return "<aggregate_type>"
	case eventType:
		return "<event_type>"
	case table:
		return "<table>"
	case header:
		return "<header:" + p.header + ">"
	default:
		return p.literal
	}
}
