package router

import (
	"slices"
	"strconv"
	"strings"
)

type place uint8

const (
	inHeader place = iota
	inEnvelope
	asPartition
)

var places = []string{"header", "envelope", "partition"}

// placement is an entry of table.fields.additional.placement.
type placement struct {
	column string
	place  place
	alias  string
}

// payloadField is the first field of an envelope.
const payloadField = "payload"

// parsePlacements reads the list as Debezium does; of what it accepts, that which
// fails at every row is refused here.
func parsePlacements(text string) ([]placement, error) {
	fail := func(reason string) error {
		return &OptionError{
			Name: "table.fields.additional.placement", Value: text, Text: reason,
			way: "write column:placement or column:placement:alias, with commas between; a placement is header, envelope or partition",
		}
	}
	var list []placement
	for _, entry := range javaSplit(text, ",") {
		parts := javaSplit(entry, ":")
		if len(parts) < 2 || len(parts) > 3 {
			return nil, fail(strconv.Quote(entry) + " is neither a pair nor a trio")
		}
		for i := range parts {
			parts[i] = javaTrim(parts[i])
		}
		p := placement{column: parts[0], alias: parts[len(parts)-1]}
		if len(parts) == 2 {
			p.alias = p.column
		}
		at := slices.Index(places, strings.ToLower(parts[1]))
		if at < 0 {
			return nil, fail("there is no placement " + strconv.Quote(parts[1]))
		}
		if p.place = place(at); p.place == inEnvelope && p.alias == "" {
			return nil, fail(strconv.Quote(entry) + " names no field of the envelope")
		}
		list = append(list, p)
	}
	if len(list) == 0 {
		return nil, fail("the list is empty")
	}
	return list, nil
}

// javaSplit is String.split, which drops empty parts at the end. Splitting
// nothing gives one empty part.
func javaSplit(text, separator string) []string {
	if text == "" {
		return []string{""}
	}
	parts := strings.Split(text, separator)
	for len(parts) > 0 && parts[len(parts)-1] == "" {
		parts = parts[:len(parts)-1]
	}
	return parts
}

// javaTrim is String.trim.
func javaTrim(s string) string { return strings.TrimFunc(s, blank) }

func blank(r rune) bool { return r <= ' ' }

// repeated names a field that an envelope would have twice.
func repeated(list []placement) (string, bool) {
	seen := []string{payloadField}
	for _, p := range list {
		if p.place != inEnvelope {
			continue
		}
		if slices.Contains(seen, p.alias) {
			return p.alias, true
		}
		seen = append(seen, p.alias)
	}
	return "", false
}
