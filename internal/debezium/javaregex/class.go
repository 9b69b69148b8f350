package javaregex

// class reads […] as a set. Java's classes nest, which means union, and know
// intersection; a ^ negates all that follows, intersections too.
func (p *parser) class() (set, error) {
	if p.depth++; p.depth > maxDepth {
		return nil, p.fail("too many classes in classes", wayRewrite)
	}
	defer func() { p.depth-- }()
	p.pos++
	negate := p.take('^')
	s, err := p.operands()
	if err != nil {
		return nil, err
	}
	p.pos++ // ]
	if negate {
		s = s.negate()
	}
	return s, nil
}

// operands reads up to the closing bracket: items, or intersections of items.
func (p *parser) operands() (set, error) {
	s, err := p.items()
	if err != nil {
		return nil, err
	}
	for p.peek() == '&' { // items stops at && only
		p.pos += 2
		var right set
		switch p.peek() {
		case ']', '&':
			return nil, p.fail("&& lacks what is behind it", wayRewrite)
		case '[':
			for p.peek() == '[' {
				more, err := p.class()
				if err != nil {
					return nil, err
				}
				right = right.union(more)
			}
			// Java forgets the bracketed operand when something else follows.
			if p.peek() != ']' && (p.peek() != '&' || p.ahead(1) != '&') {
				return nil, p.fail("an operand of && is either in brackets or without them", wayRewrite)
			}
		default:
			if right, err = p.operands(); err != nil {
				return nil, err
			}
		}
		s = s.intersect(right)
	}
	return s, nil
}

// items reads a union, up to ] or &&. A ] that comes first stands for itself.
func (p *parser) items() (set, error) {
	var s set
	for first := true; ; first = false {
		var item set
		var err error
		switch r := p.peek(); {
		case !p.more():
			return nil, p.fail("unclosed class", wayFault)
		case r == ']' && !first:
			return s, nil
		case r == '&' && p.ahead(1) == '&':
			if first {
				return nil, p.fail("&& lacks what is before it", wayRewrite)
			}
			return s, nil
		case r == '[':
			item, err = p.class()
		default:
			item, err = p.item()
		}
		if err != nil {
			return nil, err
		}
		s = s.union(item)
	}
}

// item reads a character, a range, or a class by its escape.
func (p *parser) item() (set, error) {
	if p.peek() == '\\' {
		vertical := p.ahead(1) == 'v' && p.ahead(2) == '-'
		if s, ok, err := p.classEscape(); err != nil || ok {
			if vertical {
				return nil, p.fail(`\v before a - means another thing to Java`, wayRewrite)
			}
			return s, err
		}
	}
	low, err := p.member()
	if err != nil {
		return nil, err
	}
	high := low
	if p.peek() == '-' && p.pos+1 < len(p.tokens) && p.ahead(1) != '[' && p.ahead(1) != ']' {
		p.pos++
		if p.peek() == '\\' {
			if _, ok := predefined(p.ahead(1)); ok || p.ahead(1) == 'p' || p.ahead(1) == 'P' {
				return nil, p.fail("a class as the end of a range", wayFault)
			}
		}
		if high, err = p.member(); err != nil {
			return nil, err
		}
		if high < low {
			return nil, p.fail("a range whose end is before its start", wayFault)
		}
	}
	s := set{{low, high}}
	if p.fold {
		s = s.foldASCII()
	}
	return s, nil
}

func (p *parser) member() (rune, error) {
	if !p.more() {
		return 0, p.fail("unclosed class", wayFault)
	}
	if p.peek() == '\\' {
		return p.character()
	}
	r := p.tokens[p.pos].r
	p.pos++
	return r, nil
}
