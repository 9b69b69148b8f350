package expand

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// Limits of Jackson's StreamReadConstraints.
const (
	maxDepth  = 1000
	maxNumber = 1000
	maxName   = 50_000
	maxString = 20_000_000
)

type kind uint8

const (
	null kind = iota
	text
	boolean
	integer // of 32 bits
	long    // of 64 bits
	double
	big // an integer beyond 64 bits
	array
	object
)

// String names the kind as Jackson does.
func (k kind) String() string {
	return [...]string{"NULL", "STRING", "BOOLEAN", "NUMBER", "NUMBER", "NUMBER", "NUMBER", "ARRAY", "OBJECT"}[k]
}

// node is a JSON value.
type node struct {
	kind    kind
	integer int64 // boolean as 0 or 1
	double  float64
	text    []byte
	names   [][]byte // of an object
	nodes   []node   // of an array, and of an object the values of its names
	index   map[string]int
}

// few members are searched one by one.
const few = 16

// find returns the place of a member; hint is where it is likely to be.
func (n *node) find(name string, hint int) int {
	if hint < len(n.names) && string(n.names[hint]) == name {
		return hint
	}
	if n.index != nil {
		if i, ok := n.index[name]; ok {
			return i
		}
		return -1
	}
	for i := range n.names {
		if string(n.names[i]) == name {
			return i
		}
	}
	return -1
}

// set adds a member; one of the same name keeps its place and gets the value.
func (n *node) set(name []byte, value node) {
	if i := n.find(string(name), len(n.names)); i >= 0 {
		n.nodes[i] = value
		return
	}
	n.names = append(n.names, name)
	n.nodes = append(n.nodes, value)
	switch {
	case n.index != nil:
		n.index[string(name)] = len(n.names) - 1
	case len(n.names) > few:
		n.index = make(map[string]int, 2*few)
		for i, name := range n.names {
			n.index[string(name)] = i
		}
	}
}

// parser reads one JSON document from the start of a text.
type parser struct {
	text []byte
	at   int
}

var errEnd = errors.New("unexpected end of the JSON text")

func (p *parser) fail(what string) error {
	if p.at >= len(p.text) {
		return errEnd
	}
	return fmt.Errorf("%s at byte %d of the JSON text", what, p.at)
}

// next skips white space and returns the byte behind it, or 0 at the end.
func (p *parser) next() byte {
	for ; p.at < len(p.text); p.at++ {
		switch c := p.text[p.at]; c {
		case ' ', '\t', '\n', '\r':
		default:
			return c
		}
	}
	return 0
}

func (p *parser) value(depth int) (node, error) {
	switch c := p.next(); {
	case c == '{':
		return p.object(depth + 1)
	case c == '[':
		return p.array(depth + 1)
	case c == '"':
		t, err := p.string()
		if len(t) > maxString && utf16Length(t) > maxString {
			err = fmt.Errorf("string of more than %d characters", maxString)
		}
		return node{kind: text, text: t}, err
	case c == '-' || c >= '0' && c <= '9':
		return p.number()
	}
	for word, n := range words {
		if bytes.HasPrefix(p.text[p.at:], []byte(word)) {
			p.at += len(word)
			return n, nil
		}
	}
	return node{}, p.fail("unexpected character")
}

var words = map[string]node{
	"null": {kind: null}, "true": {kind: boolean, integer: 1}, "false": {kind: boolean},
}

func (p *parser) object(depth int) (node, error) {
	n := node{kind: object}
	if depth > maxDepth {
		return n, fmt.Errorf("more than %d levels of nesting", maxDepth)
	}
	p.at++
	if p.next() == '}' {
		p.at++
		return n, nil
	}
	for {
		if p.next() != '"' {
			return n, p.fail("expected the name of a member")
		}
		name, err := p.string()
		if err != nil {
			return n, err
		}
		if len(name) > maxName && utf16Length(name) > maxName {
			return n, fmt.Errorf("name of more than %d characters", maxName)
		}
		if p.next() != ':' {
			return n, p.fail("expected a colon")
		}
		p.at++
		value, err := p.value(depth)
		if err != nil {
			return n, err
		}
		n.set(name, value)
		done, err := p.comma('}')
		if done || err != nil {
			return n, err
		}
	}
}

func (p *parser) array(depth int) (node, error) {
	n := node{kind: array}
	if depth > maxDepth {
		return n, fmt.Errorf("more than %d levels of nesting", maxDepth)
	}
	p.at++
	if p.next() == ']' {
		p.at++
		return n, nil
	}
	for {
		value, err := p.value(depth)
		if err != nil {
			return n, err
		}
		n.nodes = append(n.nodes, value)
		done, err := p.comma(']')
		if done || err != nil {
			return n, err
		}
	}
}

// comma reads what follows an element: another one, or the end.
func (p *parser) comma(end byte) (done bool, err error) {
	switch p.next() {
	case ',':
		p.at++
		return false, nil
	case end:
		p.at++
		return true, nil
	}
	return false, p.fail("expected a comma or the end")
}

// digits reads a run of digits and returns its length.
func (p *parser) digits() int {
	start := p.at
	for p.at < len(p.text) && p.text[p.at] >= '0' && p.text[p.at] <= '9' {
		p.at++
	}
	return p.at - start
}

func (p *parser) number() (node, error) {
	start := p.at
	if p.text[p.at] == '-' {
		p.at++
	}
	zero := p.at < len(p.text) && p.text[p.at] == '0'
	length := p.digits()
	if length == 0 || zero && length > 1 {
		return node{}, p.fail("bad number")
	}
	whole := true
	if p.at < len(p.text) && p.text[p.at] == '.' {
		p.at++
		n := p.digits()
		if n == 0 {
			return node{}, p.fail("expected a digit behind the decimal point")
		}
		whole, length = false, length+n
	}
	if p.at < len(p.text) && p.text[p.at]|0x20 == 'e' {
		p.at++
		if p.at < len(p.text) && (p.text[p.at] == '+' || p.text[p.at] == '-') {
			p.at++
		}
		n := p.digits()
		if n == 0 {
			return node{}, p.fail("expected a digit in the exponent")
		}
		whole, length = false, length+n
	}
	if length > maxNumber {
		return node{}, fmt.Errorf("number of more than %d digits", maxNumber)
	}
	literal := string(p.text[start:p.at])
	if !whole {
		f, err := strconv.ParseFloat(literal, 64)
		if err != nil && !errors.Is(err, strconv.ErrRange) {
			return node{}, p.fail("bad number")
		}
		return node{kind: double, double: f}, nil
	}
	i, err := strconv.ParseInt(literal, 10, 64)
	switch {
	case err != nil:
		return node{kind: big}, nil
	case i < math.MinInt32 || i > math.MaxInt32:
		return node{kind: long, integer: i}, nil
	}
	return node{kind: integer, integer: i}, nil
}

// string reads a quoted string; without escapes it is a part of the text.
func (p *parser) string() ([]byte, error) {
	p.at++
	start := p.at
	for ; p.at < len(p.text); p.at++ {
		switch c := p.text[p.at]; {
		case c == '"':
			p.at++
			return p.text[start : p.at-1 : p.at-1], nil
		case c == '\\':
			return p.escaped(append([]byte(nil), p.text[start:p.at]...))
		case c < 0x20:
			return nil, p.fail("unescaped control character")
		}
	}
	return nil, errEnd
}

// escaped reads on in a string with escapes. A surrogate without its pair is
// kept in three bytes, as package connect wants it.
func (p *parser) escaped(out []byte) ([]byte, error) {
	for p.at < len(p.text) {
		c := p.text[p.at]
		switch {
		case c == '"':
			p.at++
			return out, nil
		case c < 0x20:
			return nil, p.fail("unescaped control character")
		case c != '\\':
			out = append(out, c)
			p.at++
			continue
		}
		if p.at++; p.at >= len(p.text) {
			break
		}
		switch c := p.text[p.at]; c {
		case '"', '\\', '/':
			out = append(out, c)
		case 'b':
			out = append(out, '\b')
		case 't':
			out = append(out, '\t')
		case 'n':
			out = append(out, '\n')
		case 'f':
			out = append(out, '\f')
		case 'r':
			out = append(out, '\r')
		case 'u':
			if p.at+5 > len(p.text) {
				p.at = len(p.text)
				return nil, errEnd
			}
			unit, err := strconv.ParseUint(string(p.text[p.at+1:p.at+5]), 16, 16)
			if err != nil {
				return nil, p.fail("bad escape")
			}
			out = appendUnit(out, rune(unit))
			p.at += 4
		default:
			return nil, p.fail("bad escape")
		}
		p.at++
	}
	return nil, errEnd
}

// appendUnit appends a UTF-16 code unit, which may complete a pair.
func appendUnit(out []byte, unit rune) []byte {
	if !utf16.IsSurrogate(unit) {
		return utf8.AppendRune(out, unit)
	}
	if n := len(out); unit >= 0xdc00 && n >= 3 && out[n-3] == 0xed && out[n-2] >= 0xa0 && out[n-2] < 0xb0 {
		high := 0xd000 | rune(out[n-2]&0x3f)<<6 | rune(out[n-1]&0x3f)
		return utf8.AppendRune(out[:n-3], utf16.DecodeRune(high, unit))
	}
	return append(out, 0xe0|byte(unit>>12), 0x80|byte(unit>>6&0x3f), 0x80|byte(unit&0x3f))
}

// utf16Length is the length of a Java string.
func utf16Length(text []byte) int {
	n := 0
	for _, c := range text {
		if c&0xc0 != 0x80 {
			n++
		}
		if c >= 0xf0 {
			n++
		}
	}
	return n
}
