package column

import (
	"bytes"

	"github.com/walpost/walpost/internal/debezium/connect"
)

// buildHStore does hstore, as JSON text or as a map.
func (c *codec) buildHStore() {
	if c.hstoreMap {
		c.schema = &connect.Schema{Type: connect.Map, Key: plain(connect.String), Elem: optional(plain(connect.String))}
		c.convert, c.zero = hstoreMap, connect.Value{Valid: true, List: []connect.Value{}}
		return
	}
	c.schema, c.convert, c.zero = named(connect.String, nameJSON), hstoreJSON, words("{}")
}

// hashMapBuckets is what a Java HashMap starts with.
const hashMapBuckets = 16

// parseHStore reads "key"=>"value", "key"=>NULL and puts it into Java's order.
func parseHStore(s *Scratch, text []byte) ([]entry, error) {
	var entries []entry
	for len(text) > 0 {
		var e entry
		var ok bool
		if e.key, text, ok = quoted(s, text); !ok {
			return nil, errLost
		}
		if text, ok = bytes.CutPrefix(text, []byte("=>")); !ok {
			return nil, errLost
		}
		if rest, null := bytes.CutPrefix(text, []byte("NULL")); null {
			e.null, text = true, rest
		} else if e.value, text, ok = quoted(s, text); !ok {
			return nil, errLost
		}
		e.hash = spread(stringHash(e.key))
		entries = append(entries, e)
		if len(text) == 0 {
			break
		}
		if text, ok = bytes.CutPrefix(text, []byte(", ")); !ok {
			return nil, errLost
		}
	}
	javaOrder(entries, hashMapBuckets)
	return entries, nil
}

// quoted reads a string in quotes and returns the rest.
func quoted(s *Scratch, text []byte) (value, rest []byte, ok bool) {
	if len(text) == 0 || text[0] != '"' {
		return nil, nil, false
	}
	end := closingQuote(text, 0)
	if end < 0 {
		return nil, nil, false
	}
	return unescape(s, text[1:end]), text[end+1:], true
}

func hstoreMap(_ *codec, s *Scratch, text []byte) (connect.Value, error) {
	entries, err := parseHStore(s, text)
	if err != nil {
		return connect.Value{}, err
	}
	list := s.list(2 * len(entries))
	for i, e := range entries {
		list[2*i] = connect.Value{Valid: true, Bytes: e.key}
		if !e.null {
			list[2*i+1] = connect.Value{Valid: true, Bytes: e.value}
		}
	}
	return connect.Value{Valid: true, List: list}, nil
}

func hstoreJSON(_ *codec, s *Scratch, text []byte) (connect.Value, error) {
	entries, err := parseHStore(s, text)
	if err != nil {
		return connect.Value{}, err
	}
	start := len(s.bytes)
	s.bytes = append(s.bytes, '{')
	for i, e := range entries {
		if i > 0 {
			s.bytes = append(s.bytes, ',')
		}
		s.bytes = append(appendJSON(s.bytes, e.key), ':')
		if e.null {
			s.bytes = append(s.bytes, "null"...)
		} else {
			s.bytes = appendJSON(s.bytes, e.value)
		}
	}
	s.bytes = append(s.bytes, '}')
	return s.text(start), nil
}

// appendJSON quotes as Jackson does when it writes characters, not bytes: nothing
// but quotes, backslashes and control characters is escaped.
func appendJSON(dst, text []byte) []byte {
	const hexDigits = "0123456789ABCDEF"
	dst = append(dst, '"')
	for _, c := range text {
		switch {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c >= ' ':
			dst = append(dst, c)
		case c == '\b':
			dst = append(dst, `\b`...)
		case c == '\t':
			dst = append(dst, `\t`...)
		case c == '\n':
			dst = append(dst, `\n`...)
		case c == '\f':
			dst = append(dst, `\f`...)
		case c == '\r':
			dst = append(dst, `\r`...)
		default:
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
	}
	return append(dst, '"')
}
