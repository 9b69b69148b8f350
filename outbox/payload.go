package outbox

import (
	"bytes"
	"encoding/json"
	"strconv"
	"unicode/utf8"
)

// What PostgreSQL's numeric holds, in which jsonb keeps numbers.
const (
	maxWhole    = 131072 // digits before the point
	maxFraction = 16383  // and behind it
	maxDepth    = 1000   // far below what max_stack_depth allows
)

// refused says why a column of that type would not take the payload; empty when
// it would. An INSERT that fails takes the caller's transaction with it, so this
// has to be found out before.
func refused(payloadType string, b []byte) string {
	if payloadType == "bytea" {
		return ""
	}
	if !utf8.Valid(b) {
		return "it is not UTF-8"
	}
	if bytes.IndexByte(b, 0) >= 0 {
		return "it holds a NUL, which PostgreSQL cannot store"
	}
	if payloadType == "text" {
		return ""
	}
	if !json.Valid(b) {
		return "it is not JSON"
	}
	if deep(b) {
		return "it is nested more than " + strconv.Itoa(maxDepth) + " deep"
	}
	if payloadType == "jsonb" {
		return notJSONB(b)
	}
	return ""
}

func deep(b []byte) bool {
	depth := 0
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			i = endOfString(b, i)
		case '[', '{':
			if depth++; depth > maxDepth {
				return true
			}
		case ']', '}':
			depth--
		}
	}
	return false
}

// endOfString gives the place of the closing quote; b is valid JSON.
func endOfString(b []byte, i int) int {
	for i++; b[i] != '"'; i++ {
		if b[i] == '\\' {
			i++
		}
	}
	return i
}

// notJSONB finds what is JSON and yet no jsonb: escapes that make no character,
// and numbers that numeric cannot hold.
func notJSONB(b []byte) string {
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case c == '"':
			end := endOfString(b, i)
			if why := badEscape(b[i:end]); why != "" {
				return why
			}
			i = end
		case c == '-' || c >= '0' && c <= '9':
			end := i + 1
			for end < len(b) && bytes.IndexByte([]byte("+-.eE0123456789"), b[end]) >= 0 {
				end++
			}
			if !fitsNumeric(b[i:end]) {
				return "the number " + string(b[i:min(end, i+40)]) + " is outside of what jsonb can hold"
			}
			i = end - 1
		}
	}
	return ""
}

func badEscape(s []byte) string {
	const lone = "a surrogate escape stands alone, which jsonb refuses"
	for i := 1; i < len(s); i++ {
		if s[i] != '\\' {
			continue
		}
		i++
		if s[i] != 'u' {
			continue
		}
		r := hex4(s[i+1:])
		i += 4
		switch {
		case r == 0:
			return `it holds \u0000, which jsonb cannot store`
		case r >= 0xdc00 && r <= 0xdfff:
			return lone
		case r >= 0xd800 && r <= 0xdbff:
			if len(s) < i+7 || s[i+1] != '\\' || s[i+2] != 'u' {
				return lone
			}
			if low := hex4(s[i+3:]); low < 0xdc00 || low > 0xdfff {
				return lone
			}
			i += 6
		}
	}
	return ""
}

func hex4(s []byte) uint64 {
	r, _ := strconv.ParseUint(string(s[:4]), 16, 32) // valid JSON has four digits here
	return r
}

func fitsNumeric(n []byte) bool {
	n = bytes.TrimPrefix(n, []byte("-"))
	exponent := 0
	if at := bytes.IndexAny(n, "eE"); at >= 0 {
		e, err := strconv.Atoi(string(n[at+1:]))
		if err != nil || e > 1<<20 || e < -1<<20 {
			return false
		}
		n, exponent = n[:at], e
	}
	whole, fraction, _ := bytes.Cut(n, []byte("."))
	return len(whole)+exponent <= maxWhole && len(fraction)-exponent <= maxFraction
}
