package javaregex

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// token is a character of the pattern; quoted ones stand for themselves.
type token struct {
	r      rune
	quoted bool
	at     int // place in the pattern
}

// end is what peek gives behind the last token.
const end rune = -1

const (
	maxRepeat = 1000 // regexp/syntax has no more
	maxDepth  = 200
)

// parser reads a Java pattern and writes one of Go's.
type parser struct {
	text   string
	tokens []token
	pos    int
	depth  int
	fold   bool // CASE_INSENSITIVE
	all    bool // DOTALL
	dollar bool // there is a $
	names  []string
	groups int
	// leaky are the groups that Java may leave set by an attempt that failed:
	// those in a repeated group.
	leaky []int
	// doubt says why the extent of a match is not sure; whether all of a text
	// matches is.
	doubt *Error
}

// piece is what was written for a part of the pattern.
type piece struct {
	source   string
	nullable bool // it can match nothing
	dollar   bool // it can end in $
	// inner and last bound the numbers of the capturing groups inside, without
	// the piece's own.
	inner, last int
}

func (p *parser) fail(reason, way string) *Error {
	at := utf8.RuneCountInString(p.text)
	if p.pos < len(p.tokens) {
		at = p.tokens[p.pos].at
	}
	return &Error{Text: p.text, Offset: at, Reason: reason, way: way}
}

func (p *parser) parse() (string, error) {
	if !utf8.ValidString(p.text) {
		return "", p.fail("not valid UTF-8", wayFault)
	}
	p.unquote()
	whole, err := p.alternatives()
	if err != nil {
		return "", err
	}
	if p.pos < len(p.tokens) {
		return "", p.fail("unmatched )", wayFault)
	}
	return whole.source, nil
}

// unquote takes \Q…\E apart, as Java does before it reads the pattern.
func (p *parser) unquote() {
	text := []rune(p.text)
	quoted := false
	for i := 0; i < len(text); i++ {
		pair := text[i] == '\\' && i+1 < len(text)
		switch {
		case quoted && pair && text[i+1] == 'E', !quoted && pair && text[i+1] == 'Q':
			quoted = !quoted
			i++
		case !quoted && pair:
			p.tokens = append(p.tokens, token{text[i], false, i}, token{text[i+1], false, i + 1})
			i++
		default:
			p.tokens = append(p.tokens, token{text[i], quoted, i})
		}
	}
}

// peek gives the next character if it may mean something, and end for quoted
// ones too: see literal.
func (p *parser) peek() rune { return p.ahead(0) }

func (p *parser) ahead(n int) rune {
	if p.pos+n >= len(p.tokens) || p.tokens[p.pos+n].quoted {
		return end
	}
	return p.tokens[p.pos+n].r
}

// more says that there are tokens, quoted or not.
func (p *parser) more() bool { return p.pos < len(p.tokens) }

func (p *parser) take(r rune) bool {
	if p.peek() != r {
		return false
	}
	p.pos++
	return true
}

// alternatives reads up to the end or a closing parenthesis.
func (p *parser) alternatives() (piece, error) {
	if p.depth++; p.depth > maxDepth {
		return piece{}, p.fail("too many groups in groups", wayRewrite)
	}
	defer func() { p.depth-- }()
	var out piece
	var b strings.Builder
	for {
		s, err := p.sequence()
		if err != nil {
			return piece{}, err
		}
		b.WriteString(s.source)
		out.nullable = out.nullable || s.nullable
		out.dollar = out.dollar || s.dollar
		if !p.take('|') {
			out.source = b.String()
			return out, nil
		}
		b.WriteByte('|')
	}
}

func (p *parser) sequence() (piece, error) {
	var b strings.Builder
	out := piece{nullable: true}
	for p.more() && p.peek() != '|' && p.peek() != ')' {
		if out.dollar {
			return piece{}, p.fail("something follows $: Java's $ also matches before a line break at the end, Go's does not", wayRewrite)
		}
		a, err := p.atom()
		if err != nil {
			return piece{}, err
		}
		if a.source == "" {
			continue // flags
		}
		if a, err = p.quantified(a); err != nil {
			return piece{}, err
		}
		b.WriteString(a.source)
		out.nullable = out.nullable && a.nullable
		out.dollar = a.dollar
	}
	out.source = b.String()
	return out, nil
}

func (p *parser) atom() (piece, error) {
	switch p.peek() {
	case '(':
		return p.group()
	case '[':
		s, err := p.class()
		return p.ofSet(s, false), err
	case '.':
		p.pos++
		if p.all {
			return piece{source: `(?s:.)`}, nil
		}
		return p.ofSet(dot(), false), nil
	case '^':
		p.pos++
		return piece{source: `\A`, nullable: true}, nil
	case '$':
		p.pos++
		p.dollar = true
		return piece{source: `\z`, nullable: true, dollar: true}, nil
	case '*', '+', '?':
		return piece{}, p.fail(fmt.Sprintf("%c repeats nothing", p.peek()), wayFault)
	case '{':
		return piece{}, p.fail(`a { that repeats nothing; write \{ for the character`, wayRewrite)
	case '\\':
		return p.escaped()
	}
	r := p.tokens[p.pos].r
	p.pos++
	return p.literal(r), nil
}

func (p *parser) literal(r rune) piece {
	if p.fold && letter(r) {
		return p.ofSet(set{{r, r}}, true)
	}
	return piece{source: regexp.QuoteMeta(string(r))}
}

func (p *parser) ofSet(s set, fold bool) piece {
	if fold && p.fold {
		s = s.foldASCII()
	}
	var b strings.Builder
	s.write(&b)
	return piece{source: b.String()}
}

// group reads ( and all up to its parenthesis. Flags without a group give an
// empty piece.
func (p *parser) group() (piece, error) {
	fold, all := p.fold, p.all
	p.pos++
	open := "("
	if p.take('?') {
		var err error
		if open, err = p.special(); err != nil || open == "" {
			return piece{}, err
		}
	}
	if open == "(" || strings.HasPrefix(open, "(?P") {
		p.groups++
	}
	inner := p.groups + 1
	in, err := p.alternatives()
	if err != nil {
		return piece{}, err
	}
	if !p.take(')') {
		return piece{}, p.fail("unclosed group", wayFault)
	}
	p.fold, p.all = fold, all
	in.source = open + in.source + ")"
	in.inner, in.last = inner, p.groups
	return in, nil
}

// special reads what follows (?.
func (p *parser) special() (string, error) {
	switch r := p.peek(); {
	case r == ':':
		p.pos++
		return "(?:", nil
	case r == '=', r == '!', r == '<' && (p.ahead(1) == '=' || p.ahead(1) == '!'):
		return "", p.fail("look-around is not supported", wayRewrite)
	case r == '>':
		return "", p.fail("atomic groups are not supported", wayRewrite)
	case r == '<':
		p.pos++
		return p.named()
	}
	return p.flags()
}

func (p *parser) named() (string, error) {
	var name strings.Builder
	for letter(p.peek()) || name.Len() > 0 && digit(p.peek()) {
		name.WriteRune(p.peek())
		p.pos++
	}
	switch {
	case name.Len() == 0 || !p.take('>'):
		return "", p.fail("the name of a group has letters and digits only", wayFault)
	case slices.Contains(p.names, name.String()):
		return "", p.fail("two groups have the name "+name.String(), wayFault)
	}
	p.names = append(p.names, name.String())
	return "(?P<" + name.String() + ">", nil
}

// flags reads (?i), (?s) and their like, which hold to the end of the group that
// they are in, or (?i:…).
func (p *parser) flags() (string, error) {
	on := true
	for {
		switch p.peek() {
		case 'i':
			p.fold = on
		case 's':
			p.all = on
		case '-':
			if !on {
				return "", p.fail("two minus signs in flags", wayFault)
			}
			on = false
		case ')':
			p.pos++
			return "", nil
		case ':':
			p.pos++
			return "(?:", nil
		case 'd', 'm', 'u', 'U', 'x', 'c':
			return "", p.fail(fmt.Sprintf("flag %c is not supported", p.peek()), wayRewrite)
		default:
			return "", p.fail("unknown kind of group", wayFault)
		}
		p.pos++
	}
}

// quantified reads the quantifier behind an atom, if there is one.
func (p *parser) quantified(a piece) (piece, error) {
	from, to := 1, 1
	var mark string
	switch p.peek() {
	case '?':
		from, mark = 0, "?"
	case '*':
		from, to, mark = 0, maxRepeat, "*"
	case '+':
		to, mark = maxRepeat, "+"
	case '{':
		var err error
		if from, to, mark, err = p.counted(); err != nil {
			return piece{}, err
		}
	default:
		return a, nil
	}
	if a.dollar {
		return piece{}, p.fail("a repeated $ is not supported", wayRewrite)
	}
	if mark != "?" {
		if a.nullable && p.doubt == nil {
			p.doubt = p.fail("what is repeated can match nothing, where Java and Go may find another match and other groups", wayRewrite)
		}
		for g := a.inner; g <= a.last && a.last > 0; g++ {
			p.leaky = append(p.leaky, g)
		}
	}
	p.pos++ // the mark, or the closing brace
	if p.peek() == '+' {
		return piece{}, p.fail("possessive quantifiers are not supported", wayRewrite)
	}
	if p.take('?') {
		mark += "?"
	}
	switch p.peek() {
	case '*', '+', '?', '{':
		return piece{}, p.fail("a quantifier behind a quantifier", wayRewrite)
	}
	a.source += mark
	a.nullable = a.nullable || from == 0 || to == 0
	return a, nil
}

// counted reads {n}, {n,} or {n,m} and stays at the closing brace.
func (p *parser) counted() (from, to int, mark string, err error) {
	p.pos++
	number := func() (int, bool) {
		n, any := 0, false
		for ; digit(p.peek()); p.pos++ {
			n, any = min(n*10+int(p.peek()-'0'), 1<<20), true
		}
		return n, any
	}
	from, any := number()
	if !any {
		return 0, 0, "", p.fail("a { that is no quantifier; write \\{ for the character", wayFault)
	}
	to, mark = from, fmt.Sprintf("{%d}", from)
	if p.take(',') {
		if to, any = number(); any {
			mark = fmt.Sprintf("{%d,%d}", from, to)
		} else {
			to, mark = max(from, maxRepeat), fmt.Sprintf("{%d,}", from)
		}
	}
	switch {
	case p.peek() != '}':
		return 0, 0, "", p.fail("unclosed quantifier", wayFault)
	case to < from:
		return 0, 0, "", p.fail("the quantifier's limits are the wrong way round", wayFault)
	case to > maxRepeat:
		return 0, 0, "", p.fail(fmt.Sprintf("more than %d repetitions are not supported", maxRepeat), wayRewrite)
	}
	return from, to, mark, nil
}
