package connector

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

const jsonWay = `a connector is {"name": …, "config": {key: value, …}} or the map of keys and values alone`

// jsonReader reads an object of scalars, and knows the lines.
type jsonReader struct {
	name string
	data []byte
	dec  *json.Decoder
	errs Errors
}

// readJSON reads the body of Connect's REST interface, or the configuration
// alone.
func readJSON(name string, data []byte) ([]pair, error) {
	if !utf8.Valid(data) {
		return nil, &Error{Text: name + ": not UTF-8", Way: "save the file as UTF-8"}
	}
	r := &jsonReader{name: name, data: data, dec: json.NewDecoder(bytes.NewReader(data))}
	r.dec.UseNumber()
	pairs, err := r.document()
	if err == nil && len(r.errs) > 0 {
		return nil, r.errs
	}
	return pairs, err
}

func (r *jsonReader) line() int {
	return 1 + bytes.Count(r.data[:r.dec.InputOffset()], []byte("\n"))
}

func (r *jsonReader) fail(line int, what, way string) {
	r.errs = append(r.errs, &Error{Text: fmt.Sprintf("%s:%d: %s", r.name, line, what), Way: way})
}

// syntax says where the file stops being JSON. The parser's text may quote one
// character and no more. The tokenizer does not know the place; the check of a
// whole document does.
func (r *jsonReader) syntax(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return &Error{Text: fmt.Sprintf("%s:%d: the file ends within the object", r.name, r.line()), Way: "the file is cut off, or a } is missing"}
	}
	line := r.line()
	var whole json.RawMessage
	if s, ok := errors.AsType[*json.SyntaxError](json.Unmarshal(r.data, &whole)); ok {
		line, err = 1+bytes.Count(r.data[:min(max(s.Offset-1, 0), int64(len(r.data)))], []byte("\n")), s
	}
	return &Error{Text: fmt.Sprintf("%s:%d: not valid JSON: %v", r.name, line, err), Way: "check quotes and commas; JSON has no comments"}
}

func (r *jsonReader) document() ([]pair, error) {
	t, err := r.dec.Token()
	if err != nil {
		return nil, r.syntax(err)
	}
	if t != json.Delim('{') {
		return nil, &Error{Text: r.name + ": expected an object", Way: jsonWay}
	}
	top, config, err := r.object(true)
	if err != nil {
		return nil, err
	}
	if _, err := r.dec.Token(); !errors.Is(err, io.EOF) {
		return nil, &Error{Text: fmt.Sprintf("%s:%d: more text after the object", r.name, r.line()), Way: "put one connector in one file"}
	}
	if config == nil {
		return top, nil
	}
	return r.body(top, config), nil
}

// body joins what stands beside config to it. GET answers with tasks and type
// as well; they are no configuration.
func (r *jsonReader) body(top, config []pair) []pair {
	pairs := config
	for _, p := range top {
		switch p.key {
		case "name":
			named := find(config, "name")
			if named == nil {
				pairs = append([]pair{p}, pairs...)
			} else if named.value != p.value {
				r.fail(named.line, "name differs from the one beside config", "Connect refuses this too; keep one of them")
			}
		case "type": // "source", in answers
		case "initial_state":
			pairs = append(pairs, p)
		default:
			r.fail(p.line, fmt.Sprintf("unexpected %q beside \"config\"", p.key), jsonWay)
		}
	}
	return pairs
}

func find(pairs []pair, key string) *pair {
	for i := range pairs {
		if pairs[i].key == key {
			return &pairs[i]
		}
	}
	return nil
}

// object reads up to the closing brace. Only the outermost one can hold
// another, under config.
func (r *jsonReader) object(outer bool) (pairs, config []pair, err error) {
	seen := map[string]int{}
	for r.dec.More() {
		t, err := r.dec.Token()
		if err != nil {
			return nil, nil, r.syntax(err)
		}
		key, ok := t.(string)
		if !ok {
			return nil, nil, &Error{Text: fmt.Sprintf("%s:%d: not valid JSON: expected a key", r.name, r.line()), Way: jsonWay}
		}
		line := r.line()
		if first, ok := seen[key]; ok {
			r.fail(line, fmt.Sprintf("key %q is given twice, first on line %d", key, first), "keep one of them")
		}
		seen[key] = line
		t, err = r.dec.Token()
		if err != nil {
			return nil, nil, r.syntax(err)
		}
		switch v := t.(type) {
		case string:
			pairs = append(pairs, pair{key: key, value: v, line: line})
		case json.Number:
			pairs = append(pairs, pair{key: key, value: v.String(), line: line})
		case bool:
			pairs = append(pairs, pair{key: key, value: fmt.Sprint(v), line: line})
		case nil:
			r.fail(line, fmt.Sprintf("%q is null", key), "give it a value, or remove the key")
		case json.Delim:
			if outer && v == '{' && key == "config" {
				if config, _, err = r.object(false); err != nil {
					return nil, nil, err
				}
				if config == nil {
					config = []pair{}
				}
				continue
			}
			if !(outer && v == '[' && key == "tasks") {
				what := "an object"
				if v == '[' {
					what = "an array"
				}
				r.fail(line, fmt.Sprintf("the value of %q is %s", key, what), "Connect takes text, numbers, true and false; write a list as text with commas")
			}
			if err := r.skip(); err != nil {
				return nil, nil, err
			}
		}
	}
	if _, err := r.dec.Token(); err != nil {
		return nil, nil, r.syntax(err)
	}
	return pairs, config, nil
}

// skip passes over the rest of an array or object that has begun.
func (r *jsonReader) skip() error {
	for depth := 1; depth > 0; {
		t, err := r.dec.Token()
		if err != nil {
			return r.syntax(err)
		}
		switch t {
		case json.Delim('['), json.Delim('{'):
			depth++
		case json.Delim(']'), json.Delim('}'):
			depth--
		}
	}
	return nil
}
