package config

import (
	"strconv"
	"strings"
	"time"
)

func quote(s string) string { return strconv.Quote(s) }

const (
	durationWay = "write a number with a unit: 500ms, 10s, 2m"
	pairsWay    = "write name=value, such as min.insync.replicas=2"
)

// parseText puts a value from a flag, the environment or the table of defaults
// in its place.
func parseText(at any, text string) *fault {
	var bad *fault
	switch p := at.(type) {
	case *string:
		*p = text
	case *bool:
		v, err := strconv.ParseBool(text)
		if err != nil {
			return &fault{quote(text) + " is neither true nor false", "write true or false"}
		}
		*p = v
	case *int:
		v, err := strconv.ParseInt(text, 10, 32)
		if err != nil {
			return &fault{quote(text) + " is not a whole number", "write digits only"}
		}
		*p = int(v)
	case *Size:
		*p, bad = parseSize(text)
	case *time.Duration:
		*p, bad = parseDuration(text)
	case *[]string:
		*p = splitList(text)
	case *map[string]string:
		*p, bad = parsePairs(text)
	case *[]Table:
		*p = nil
		for _, item := range splitList(text) {
			t, f := parseTable(item)
			if f != nil {
				return f
			}
			*p = append(*p, t)
		}
	}
	return bad
}

func parseDuration(text string) (time.Duration, *fault) {
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, &fault{quote(text) + " is not a duration", durationWay}
	}
	return d, nil
}

// splitList cuts at commas outside double quotes and drops what is empty.
func splitList(text string) []string {
	quoted := false
	items := strings.FieldsFunc(text, func(r rune) bool {
		if r == '"' {
			quoted = !quoted
		}
		return r == ',' && !quoted
	})
	kept := items[:0]
	for _, item := range items {
		if item = strings.TrimSpace(item); item != "" {
			kept = append(kept, item)
		}
	}
	return kept
}

// parsePairs reads a=1,b=2. A part without = belongs to the value before it,
// so that cleanup.policy=compact,delete needs no quotes.
func parsePairs(text string) (map[string]string, *fault) {
	pairs := map[string]string{}
	last := ""
	for part := range strings.SplitSeq(text, ",") {
		name, value, ok := strings.Cut(part, "=")
		name = strings.TrimSpace(name)
		switch {
		case ok && name != "":
			pairs[name], last = strings.TrimSpace(value), name
		case !ok && last != "":
			pairs[last] += "," + strings.TrimSpace(part)
		case strings.TrimSpace(part) == "":
		default:
			return nil, &fault{quote(part) + " is not a setting", pairsWay}
		}
	}
	if len(pairs) == 0 {
		return nil, nil
	}
	return pairs, nil
}

// formatDuration is Duration.String without the zeroes at its end: 1m, not 1m0s.
func formatDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
