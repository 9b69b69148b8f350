package connector

import (
	"fmt"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

const propertiesWay = `write key=value; a backslash in a value is written twice`

// readProperties reads the form of java.util.Properties. Java reads a stream as
// ISO-8859-1, which is how Kafka Connect opens its files; Quarkus, and with it
// Debezium Server, reads UTF-8.
func readProperties(name string, data []byte, latin1 bool) ([]pair, error) {
	var text []rune
	if latin1 {
		text = make([]rune, len(data))
		for i, b := range data {
			text[i] = rune(b)
		}
	} else {
		if !utf8.Valid(data) {
			return nil, &Error{Text: name + ": not UTF-8", Way: "save the file as UTF-8"}
		}
		text = []rune(string(data))
	}
	r := &propertiesReader{name: name, text: text, line: 1}
	var pairs []pair
	for {
		logical, line, ok := r.logical()
		if !ok {
			return pairs, nil
		}
		p, err := r.pair(logical, line)
		if err != nil {
			return nil, err
		}
		pairs = append(pairs, p)
	}
}

type propertiesReader struct {
	name string
	text []rune
	at   int
	line int
}

func isBlank(c rune) bool { return c == ' ' || c == '\t' || c == '\f' }

// natural gives the next line of the file without its end.
func (r *propertiesReader) natural() (line []rune, ok bool) {
	if r.at >= len(r.text) {
		return nil, false
	}
	start := r.at
	for r.at < len(r.text) && r.text[r.at] != '\n' && r.text[r.at] != '\r' {
		r.at++
	}
	line = r.text[start:r.at]
	if r.at < len(r.text) {
		if r.text[r.at] == '\r' && r.at+1 < len(r.text) && r.text[r.at+1] == '\n' {
			r.at++
		}
		r.at++
	}
	r.line++
	for len(line) > 0 && isBlank(line[0]) {
		line = line[1:]
	}
	return line, true
}

// logical joins continued lines, and passes over blank ones and comments.
func (r *propertiesReader) logical() (text []rune, line int, ok bool) {
	for {
		line = r.line
		part, ok := r.natural()
		if !ok {
			return nil, 0, false
		}
		if len(part) == 0 || part[0] == '#' || part[0] == '!' {
			continue
		}
		text = append([]rune(nil), part...)
		for continued(text) {
			text = text[:len(text)-1]
			part, ok := r.natural()
			if !ok {
				break
			}
			text = append(text, part...)
		}
		if len(text) > 0 {
			return text, line, true
		}
	}
}

// continued says that the text ends in an odd number of backslashes.
func continued(text []rune) bool {
	n := 0
	for n < len(text) && text[len(text)-1-n] == '\\' {
		n++
	}
	return n%2 == 1
}

func (r *propertiesReader) pair(text []rune, line int) (pair, error) {
	end := 0
	for end < len(text) && text[end] != '=' && text[end] != ':' && !isBlank(text[end]) {
		if text[end] == '\\' {
			end++
		}
		end++
	}
	end = min(end, len(text))
	begin := end
	for begin < len(text) && isBlank(text[begin]) {
		begin++
	}
	if begin < len(text) && (text[begin] == '=' || text[begin] == ':') {
		begin++
	}
	for begin < len(text) && isBlank(text[begin]) {
		begin++
	}
	key, ok := unescape(text[:end])
	if !ok {
		return pair{}, r.malformed(line)
	}
	value, ok := unescape(text[begin:])
	if !ok {
		return pair{}, r.malformed(line)
	}
	return pair{key: key, value: value, line: line}, nil
}

func (r *propertiesReader) malformed(line int) error {
	return &Error{Text: fmt.Sprintf("%s:%d: \\u is not followed by four hexadecimal digits", r.name, line), Way: propertiesWay}
}

// unescape undoes Java's escapes, which count in UTF-16.
func unescape(text []rune) (string, bool) {
	units := make([]uint16, 0, len(text))
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c != '\\' {
			units = utf16.AppendRune(units, c)
			continue
		}
		i++
		if i >= len(text) {
			break
		}
		switch c = text[i]; c {
		case 't':
			c = '\t'
		case 'n':
			c = '\n'
		case 'r':
			c = '\r'
		case 'f':
			c = '\f'
		case 'u':
			if i+4 >= len(text) {
				return "", false
			}
			u, err := strconv.ParseUint(string(text[i+1:i+5]), 16, 16)
			if err != nil {
				return "", false
			}
			units = append(units, uint16(u))
			i += 4
			continue
		}
		units = utf16.AppendRune(units, c)
	}
	return string(utf16.Decode(units)), true
}
