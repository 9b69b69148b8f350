package connector

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"
)

// maxDepth of nested keys; the longest of Debezium have some ten parts.
const maxDepth = 32

// readYAML reads Debezium Server's application.yaml: nested keys are joined
// with dots.
func readYAML(name string, data []byte) ([]pair, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var document, more yaml.Node
	if err := decoder.Decode(&document); errors.Is(err, io.EOF) {
		return nil, nil
	} else if err != nil {
		// The parser's text can quote the file.
		return nil, &Error{Text: name + ": not valid YAML", Way: "check indentation and quotes"}
	}
	if err := decoder.Decode(&more); !errors.Is(err, io.EOF) {
		return nil, &Error{Text: name + ": more than one YAML document", Way: "put everything in one document"}
	}
	r := &yamlReader{name: name, seen: map[string]int{}}
	r.mapping("", document.Content[0], 0)
	if len(r.errs) > 0 {
		return nil, r.errs
	}
	return r.pairs, nil
}

type yamlReader struct {
	name  string
	pairs []pair
	seen  map[string]int
	errs  Errors
}

func (r *yamlReader) fail(line int, what, way string) {
	r.errs = append(r.errs, &Error{Text: fmt.Sprintf("%s:%d: %s", r.name, line, what), Way: way})
}

func (r *yamlReader) mapping(prefix string, n *yaml.Node, depth int) {
	if n.Kind != yaml.MappingNode || depth > maxDepth {
		r.fail(n.Line, "expected keys and values", "write key: value, one a line")
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Kind != yaml.ScalarNode || key.ShortTag() == "!!merge" {
			r.fail(key.Line, "expected a plain key", "write key: value; anchors and merges are not used")
			continue
		}
		name := prefix + key.Value
		switch value.Kind {
		case yaml.MappingNode:
			r.mapping(name+".", value, depth+1)
		case yaml.SequenceNode:
			r.list(name, key.Line, value)
		case yaml.ScalarNode:
			r.add(name, key.Line, value)
		default:
			r.fail(value.Line, name+": expected text", "write the value out; aliases are not used")
		}
	}
}

func (r *yamlReader) list(name string, line int, n *yaml.Node) {
	items := make([]string, 0, len(n.Content))
	for _, item := range n.Content {
		if item.Kind != yaml.ScalarNode {
			r.fail(item.Line, name+": expected a list of texts", "write the list as text with commas")
			return
		}
		items = append(items, item.Value)
	}
	r.add(name, line, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: strings.Join(items, ",")})
}

func (r *yamlReader) add(name string, line int, n *yaml.Node) {
	if n.ShortTag() == "!!null" {
		r.fail(line, name+" has no value", "give it a value, or remove the key")
		return
	}
	if first, ok := r.seen[name]; ok {
		r.fail(line, fmt.Sprintf("key %q is given twice, first on line %d", name, first), "keep one of them")
		return
	}
	r.seen[name] = line
	r.pairs = append(r.pairs, pair{key: name, value: n.Value, line: line})
}
