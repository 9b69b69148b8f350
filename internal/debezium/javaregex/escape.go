package javaregex

import "strings"

// escaped reads a backslash and what it means outside of a class.
func (p *parser) escaped() (piece, error) {
	if s, ok, err := p.classEscape(); err != nil {
		return piece{}, err
	} else if ok {
		return p.ofSet(s, false), nil
	}
	switch r := p.ahead(1); r {
	case 'A', 'z':
		p.pos += 2
		return piece{source: `\` + string(r), nullable: true}, nil
	case 'b', 'B':
		return piece{}, p.fail(`\b is not supported: which characters it takes for a word's depends on Java's version`, wayRewrite)
	case 'G', 'Z', 'R', 'X':
		return piece{}, p.fail(`\`+string(r)+" is not supported", wayRewrite)
	case 'k', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		return piece{}, p.fail("back-references are not supported", wayRewrite)
	}
	r, err := p.character()
	return p.literal(r), err
}

// classEscape reads \d and its like, and \p{…}; not ok: it is another escape.
func (p *parser) classEscape() (set, bool, error) {
	r := p.ahead(1)
	if s, ok := predefined(r); ok {
		p.pos += 2
		return s, true, nil
	}
	if r != 'p' && r != 'P' {
		return nil, false, nil
	}
	var name strings.Builder
	if p.ahead(2) == '{' {
		for n := 3; p.ahead(n) != '}'; n++ {
			if p.ahead(n) == end {
				return nil, false, p.fail("unclosed name of a class", wayFault)
			}
			name.WriteRune(p.ahead(n))
		}
	}
	s, ok := posix(name.String())
	switch {
	case !ok:
		return nil, false, p.fail("of \\p only the classes of ASCII are supported, as \\p{Alpha}: the others depend on Java's version", wayRewrite)
	case p.fold && (name.String() == "Lower" || name.String() == "Upper"):
		return nil, false, p.fail(`\p{`+name.String()+"} without regard to case depends on Java's version", wayRewrite)
	case r == 'P':
		s = s.negate()
	}
	p.pos += len(name.String()) + 4
	return s, true, nil
}

// character reads an escape that stands for one character.
func (p *parser) character() (rune, error) {
	r := p.ahead(1)
	if r == end {
		return 0, p.fail(`a \ at the end`, wayFault)
	}
	switch r {
	case 't':
		r = '\t'
	case 'n':
		r = '\n'
	case 'r':
		r = '\r'
	case 'f':
		r = '\f'
	case 'a':
		r = '\a'
	case 'e':
		r = 0x1b
	case '0':
		return p.octal()
	case 'x':
		return p.hexadecimal()
	case 'u':
		return p.unicode()
	case 'c':
		c := p.ahead(2)
		if c == end {
			return 0, p.fail(`\c lacks its character`, wayFault)
		}
		p.pos += 3
		return c ^ 64, nil
	case 'N':
		return 0, p.fail(`\N{…} is not supported: the names depend on Java's version`, wayRewrite)
	default:
		if letter(r) || digit(r) {
			return 0, p.fail(`\`+string(r)+" means nothing here", wayFault)
		}
	}
	p.pos += 2
	return r, nil
}

// octal reads \0n, \0nn and \0mnn with m up to 3.
func (p *parser) octal() (rune, error) {
	most := 2
	if p.ahead(2) >= '0' && p.ahead(2) <= '3' {
		most = 3
	}
	value, n := rune(0), 0
	for ; n < most && p.ahead(2+n) >= '0' && p.ahead(2+n) <= '7'; n++ {
		value = value*8 + p.ahead(2+n) - '0'
	}
	if n == 0 {
		return 0, p.fail(`\0 lacks its octal digits`, wayFault)
	}
	p.pos += 2 + n
	return value, nil
}

func (p *parser) hexadecimal() (rune, error) {
	if p.ahead(2) != '{' {
		value, ok := p.hex(2, 2)
		if !ok {
			return 0, p.fail(`\x lacks its two hexadecimal digits`, wayFault)
		}
		p.pos += 4
		return value, nil
	}
	n := 3
	for p.ahead(n) != '}' && p.ahead(n) != end && n < 12 {
		n++
	}
	value, ok := p.hex(3, n-3)
	if !ok || p.ahead(n) != '}' || value > maxRune {
		return 0, p.fail(`\x{…} is no code point`, wayFault)
	}
	if value >= 0xd800 && value <= 0xdfff {
		return 0, p.fail("half of a surrogate pair is not supported", wayRewrite)
	}
	p.pos += n + 1
	return value, nil
}

// unicode reads \uhhhh; two of them can be one code point.
func (p *parser) unicode() (rune, error) {
	value, ok := p.hex(2, 4)
	if !ok {
		return 0, p.fail(`\u lacks its four hexadecimal digits`, wayFault)
	}
	if value < 0xd800 || value > 0xdfff {
		p.pos += 6
		return value, nil
	}
	low, ok := p.hex(8, 4)
	if value > 0xdbff || p.ahead(6) != '\\' || p.ahead(7) != 'u' || !ok || low < 0xdc00 || low > 0xdfff {
		return 0, p.fail("half of a surrogate pair is not supported", wayRewrite)
	}
	p.pos += 12
	return 0x10000 + (value-0xd800)<<10 + (low - 0xdc00), nil
}

// hex reads count digits from the one that is ahead by from.
func (p *parser) hex(from, count int) (rune, bool) {
	value := rune(0)
	for i := range count {
		d := p.ahead(from + i)
		switch {
		case digit(d):
			d -= '0'
		case d >= 'a' && d <= 'f':
			d -= 'a' - 10
		case d >= 'A' && d <= 'F':
			d -= 'A' - 10
		default:
			return 0, false
		}
		if value > maxRune {
			return 0, false
		}
		value = value<<4 | d
	}
	return value, count > 0
}
