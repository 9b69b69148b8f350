package javaregex

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

const maxRune = 0x10ffff

// span is a range of code points, both ends included.
type span struct{ low, high rune }

// set is a set of code points: sorted spans that do not touch.
type set []span

// newSet sorts and joins.
func newSet(spans ...span) set {
	s := slices.Clone(spans)
	slices.SortFunc(s, func(a, b span) int { return cmp.Compare(a.low, b.low) })
	out := s[:0]
	for _, p := range s {
		if n := len(out); n > 0 && p.low <= out[n-1].high+1 {
			out[n-1].high = max(out[n-1].high, p.high)
			continue
		}
		out = append(out, p)
	}
	return out
}

func (s set) union(o set) set { return newSet(slices.Concat(s, o)...) }

func (s set) negate() set {
	var out set
	next := rune(0)
	for _, p := range s {
		if p.low > next {
			out = append(out, span{next, p.low - 1})
		}
		next = p.high + 1
	}
	if next <= maxRune {
		out = append(out, span{next, maxRune})
	}
	return out
}

func (s set) intersect(o set) set { return s.negate().union(o.negate()).negate() }

// foldASCII adds the other case of the ASCII letters.
func (s set) foldASCII() set {
	out := slices.Clone(s)
	for _, p := range s {
		for r := max(p.low, 'A'); r <= min(p.high, 'z'); r++ {
			if letter(r) {
				out = append(out, span{r ^ 0x20, r ^ 0x20})
			}
		}
	}
	return newSet(out...)
}

func letter(r rune) bool { return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' }

func digit(r rune) bool { return r >= '0' && r <= '9' }

// write writes the set as a class of Go's.
func (s set) write(b *strings.Builder) {
	if len(s) == 0 {
		b.WriteString(`[^\x{0}-\x{10ffff}]`)
		return
	}
	b.WriteByte('[')
	for _, p := range s {
		fmt.Fprintf(b, `\x{%x}`, p.low)
		if p.high > p.low {
			fmt.Fprintf(b, `-\x{%x}`, p.high)
		}
	}
	b.WriteByte(']')
}

// Java's predefined classes, without UNICODE_CHARACTER_CLASS.
func predefined(r rune) (set, bool) {
	switch r {
	case 'd':
		return set{{'0', '9'}}, true
	case 'w':
		return newSet(span{'a', 'z'}, span{'A', 'Z'}, span{'_', '_'}, span{'0', '9'}), true
	case 's':
		return newSet(span{'\t', '\r'}, span{' ', ' '}), true
	case 'h':
		return newSet(span{' ', ' '}, span{'\t', '\t'}, span{0xa0, 0xa0}, span{0x1680, 0x1680}, span{0x180e, 0x180e},
			span{0x2000, 0x200a}, span{0x202f, 0x202f}, span{0x205f, 0x205f}, span{0x3000, 0x3000}), true
	case 'v':
		return newSet(span{'\n', '\r'}, span{0x85, 0x85}, span{0x2028, 0x2029}), true
	case 'D', 'W', 'S', 'H', 'V':
		s, _ := predefined(r + 'a' - 'A')
		return s.negate(), true
	}
	return nil, false
}

// posix are the classes of ASCII that Java names \p{…}.
func posix(name string) (set, bool) {
	switch name {
	case "Lower":
		return set{{'a', 'z'}}, true
	case "Upper":
		return set{{'A', 'Z'}}, true
	case "ASCII":
		return set{{0, 0x7f}}, true
	case "Alpha":
		return newSet(span{'a', 'z'}, span{'A', 'Z'}), true
	case "Digit":
		return set{{'0', '9'}}, true
	case "Alnum":
		return newSet(span{'a', 'z'}, span{'A', 'Z'}, span{'0', '9'}), true
	case "Punct":
		return newSet(span{'!', '/'}, span{':', '@'}, span{'[', '`'}, span{'{', '~'}), true
	case "Graph":
		return set{{'!', '~'}}, true
	case "Print":
		return set{{' ', '~'}}, true
	case "Blank":
		return newSet(span{' ', ' '}, span{'\t', '\t'}), true
	case "Cntrl":
		return newSet(span{0, 0x1f}, span{0x7f, 0x7f}), true
	case "XDigit":
		return newSet(span{'0', '9'}, span{'a', 'f'}, span{'A', 'F'}), true
	case "Space":
		return newSet(span{'\t', '\r'}, span{' ', ' '}), true
	}
	return nil, false
}

// dot is what the dot matches: everything but line terminators.
func dot() set {
	return newSet(span{'\n', '\n'}, span{'\r', '\r'}, span{0x85, 0x85}, span{0x2028, 0x2029}).negate()
}
