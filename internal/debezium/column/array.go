package column

import (
	"github.com/walpost/walpost/internal/debezium/connect"
)

// Array types that Debezium leaves out even with include.unknown.datatypes.
func omittedArray(elem uint32) bool {
	switch elem {
	case oidMoney, oidName, oidInterval, oidVarbit, oidXML, oidPoint, oidRefcursor:
		return true
	}
	return false
}

// requiredElements says whether the schema of the elements is not optional, for
// which Debezium has no reason: then a null in the array loses the array.
func requiredElements(t *TypeInfo) bool {
	switch t.OID {
	case oidInt2, oidInt4, oidInt8, oidOID, oidChar, oidVarchar, oidText, oidBpchar, oidInet, oidCIDR,
		oidMacaddr, oidMacaddr8, oidTsrange, oidTstzrange, oidDaterange, oidInt4range, oidNumrange,
		oidInt8range, oidNumeric, oidFloat4, oidFloat8, oidBool, oidDate, oidUUID, oidJSON, oidJSONB,
		oidTime, oidTimetz, oidTimestamp, oidTimestamptz, oidBytea:
		return false
	}
	switch t.Name {
	case "geometry", "geography", "hstore", "citext", "ltree":
		return false
	}
	return true
}

// buildArray does arrays, which are known by their elements.
func (b *builder) buildArray(c *codec, t *TypeInfo) (*codec, error) {
	if omittedArray(t.Elem.OID) {
		return nil, nil
	}
	if t.Elem.OID == oidBit {
		// Debezium takes the schema of one bit string and the value of a list,
		// which do not go together.
		c.buildBits()
		c.convert = func(*codec, *Scratch, []byte) (connect.Value, error) { return connect.Value{}, errBits }
		return c, nil
	}
	c.delimiter = ','
	if t.Elem.OID == oidBox {
		c.delimiter = ';'
	}
	inner := *b
	inner.element = true
	var err error
	switch {
	case t.Elem.Kind == 'd' && !b.unknown:
		return nil, nil // Debezium does not look below the domain
	case t.Elem.Kind == 'd':
		c.elem = &codec{modes: b.modes, nested: errDimension}
		c.elem.buildUnknown()
	default:
		c.elem, err = inner.build(t.Elem)
	}
	if c.elem == nil || err != nil {
		return nil, err
	}
	elem := *c.elem.schema
	elem.Optional = elem.Optional || !requiredElements(t.Elem)
	c.elem.noNull = c.elem.noNull || !elem.Optional
	c.elem.schema = &elem
	c.schema = &connect.Schema{Type: connect.Array, Elem: &elem}
	c.convert, c.zero = array, connect.Value{Valid: true, List: []connect.Value{}}
	return c, nil
}

func array(c *codec, s *Scratch, text []byte) (connect.Value, error) {
	p := arrayParser{text: text, delimiter: c.delimiter}
	n, err := p.count()
	if err != nil {
		return connect.Value{}, err
	}
	list := s.list(n)
	for i := range list {
		e := p.next(s)
		switch {
		case e.nested && c.elem.nested.class == classRefused:
			return connect.Value{}, c.elem.nested
		case e.nested, e.null:
			// Debezium does not recognise an inner array, which makes it null.
		default:
			list[i], err = c.elem.convert(c.elem, s, e.text)
			if p := asProblemOrNil(err); p != nil && p.class == classUnexpected {
				list[i], err = connect.Value{}, nil // an element is optional
			}
			if err != nil {
				return connect.Value{}, err
			}
		}
		if !list[i].Valid && c.elem.noNull {
			return connect.Value{}, errElement
		}
	}
	return connect.Value{Valid: true, List: list}, nil
}

func asProblemOrNil(err error) *problem {
	if err == nil {
		return nil
	}
	return asProblem(err)
}

// arrayParser takes the text of an array apart.
type arrayParser struct {
	text      []byte
	i         int
	delimiter byte
}

// element of an array: its text, null, or an array in it.
type element struct {
	text         []byte
	null, nested bool
}

// count moves behind the opening brace and counts the elements.
func (p *arrayParser) count() (int, error) {
	// Other lower bounds than 1 come first: [0:2]={…}. Debezium ignores them.
	if len(p.text) > 0 && p.text[0] == '[' {
		for p.i < len(p.text) && p.text[p.i] != '=' {
			p.i++
		}
		p.i++
	}
	if p.i >= len(p.text) || p.text[p.i] != '{' {
		return 0, errText
	}
	p.i++
	n, depth := 0, 0
	for i := p.i; i < len(p.text); i++ {
		if n == 0 && p.text[i] != '}' {
			n = 1
		}
		switch p.text[i] {
		case '"':
			if i = closingQuote(p.text, i); i < 0 {
				return 0, errText
			}
		case '{':
			depth++
		case p.delimiter:
			if depth == 0 {
				n++
			}
		case '}':
			if depth == 0 {
				if i != len(p.text)-1 {
					return 0, errText
				}
				return n, nil
			}
			depth--
		}
	}
	return 0, errText
}

// closingQuote of the one at i; -1 if there is none.
func closingQuote(text []byte, i int) int {
	for i++; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i
		}
	}
	return -1
}

// next returns the next element; count has seen that it is there.
func (p *arrayParser) next(s *Scratch) element {
	start := p.i
	if start >= len(p.text) {
		return element{null: true}
	}
	switch p.text[start] {
	case '{':
		depth := 0
		for ; p.i < len(p.text); p.i++ {
			switch p.text[p.i] {
			case '"':
				p.i = closingQuote(p.text, p.i)
			case '{':
				depth++
			case '}':
				depth--
			}
			if depth == 0 {
				break
			}
		}
		p.i += 2
		return element{nested: true}
	case '"':
		end := closingQuote(p.text, start)
		p.i = end + 2
		return element{text: unescape(s, p.text[start+1:end])}
	}
	for p.i < len(p.text) && p.text[p.i] != p.delimiter && p.text[p.i] != '}' {
		p.i++
	}
	text := p.text[start:min(p.i, len(p.text))]
	p.i++
	return element{text: text, null: string(text) == "NULL"}
}

// unescape takes out the backslashes, if there are any.
func unescape(s *Scratch, text []byte) []byte {
	for i, c := range text {
		if c != '\\' {
			continue
		}
		start := len(s.bytes)
		s.bytes = append(s.bytes, text[:i]...)
		for ; i < len(text); i++ {
			if text[i] == '\\' && i+1 < len(text) {
				i++
			}
			s.bytes = append(s.bytes, text[i])
		}
		return s.since(start)
	}
	return text
}
