package config

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// Setting is one effective value, for printing.
type Setting struct {
	Name   string `json:"name"`
	Value  any    `json:"value"` // sizes in bytes, durations as text
	Origin string `json:"origin"`
	Secret bool   `json:"secret,omitempty"`

	text string
}

// Text is the value in one line.
func (s Setting) Text() string { return s.text }

// Settings lists every value with its origin, in the order of the table, with
// the secrets masked.
func (c *Config) Settings() []Setting {
	options := Options()
	settings := make([]Setting, len(options))
	for i := range options {
		o := &options[i]
		s := Setting{Name: o.Name, Origin: c.origins[o.Name].Text, Secret: o.Secret}
		s.Value, s.text = show(o.at(c))
		if o.Secret && s.Value != "" {
			s.Value, s.text = Masked, Masked
		}
		settings[i] = s
	}
	return settings
}

// Origin says where the value of the named option came from.
func (c *Config) Origin(name string) string { return c.origins[name].Text }

// show gives a value for JSON and for people. A list is never null in JSON.
func show(at any) (value any, text string) {
	switch p := at.(type) {
	case *string:
		if *p == "" || strings.ContainsAny(*p, " #\t\n\"") {
			return *p, strconv.Quote(*p)
		}
		return *p, *p
	case *bool:
		return *p, strconv.FormatBool(*p)
	case *int:
		return *p, strconv.Itoa(*p)
	case *Size:
		return int64(*p), p.String()
	case *time.Duration:
		text = formatDuration(*p)
		return text, text
	case *[]string:
		return append([]string{}, *p...), listText(*p)
	case *map[string]string:
		pairs := map[string]string{}
		items := make([]string, 0, len(*p))
		for name, v := range *p {
			pairs[name] = v
			items = append(items, name+"="+v)
		}
		slices.Sort(items)
		return pairs, listText(items)
	case *[]Table:
		items := make([]string, len(*p))
		for i, t := range *p {
			items[i] = t.describe()
		}
		return append([]Table{}, *p...), listText(items)
	default:
		return nil, ""
	}
}

func listText(items []string) string {
	if len(items) == 0 {
		return "[]"
	}
	return strings.Join(items, ", ")
}
