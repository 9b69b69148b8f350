package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// entry is an option that the file sets, with the line of its key.
type entry struct {
	line int
	node *yaml.Node
}

// file is a parsed configuration file.
type file struct {
	path   string
	values map[string]entry
	errs   Errors
}

func (f *file) fail(line int, what, way string) {
	f.errs = append(f.errs, &Error{Text: fmt.Sprintf("%s:%d: %s", f.path, line, what), Way: way})
}

// parseFile reads the structure of the file: every key must be that of an
// option or of a section. It does not look at values yet.
func parseFile(path string, data []byte, options []Option) *file {
	f := &file{path: path, values: map[string]entry{}}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var document, more yaml.Node
	err := decoder.Decode(&document)
	if errors.Is(err, io.EOF) {
		return f // nothing in it but comments
	}
	if err == nil {
		err = decoder.Decode(&more)
		if err == nil {
			f.fail(more.Line, "a second YAML document begins here", "put everything in one document")
			return f
		}
	}
	if !errors.Is(err, io.EOF) && err != nil {
		f.syntax(err, data)
		return f
	}
	f.section("", document.Content[0], options)
	return f
}

// syntax reports what the YAML parser found. Its text can quote the file in
// one case: an unknown alias, which a password with a * in front looks like.
func (f *file) syntax(err error, data []byte) {
	const way = "check indentation and quotes; a value with : or # in it goes in quotes"
	if m := regexp.MustCompile(`unknown anchor '(.*)' referenced`).FindStringSubmatch(err.Error()); m != nil {
		before, _, _ := bytes.Cut(data, []byte("*"+m[1]))
		f.fail(1+bytes.Count(before, []byte("\n")), "a value begins with *, which YAML takes for an alias", "put the value in quotes")
		return
	}
	m := regexp.MustCompile(`(?s)^yaml: (?:line (\d+): )?(.*)$`).FindStringSubmatch(err.Error())
	if m == nil {
		m = []string{"", "", err.Error()}
	}
	place := f.path
	if m[1] != "" {
		place += ":" + m[1]
	}
	f.errs = append(f.errs, &Error{Text: place + ": not valid YAML: " + m[2], Way: way})
}

// section reads the keys below prefix, which is "" or ends in a dot.
func (f *file) section(prefix string, n *yaml.Node, options []Option) {
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" {
		return // a section with everything in it commented out
	}
	f.mapping(strings.TrimSuffix(prefix, "."), n, func(key, value *yaml.Node) {
		name := prefix + key.Value
		kind := lookup(options, name)
		if kind != isUnknown && f.alias(name, value) {
			return
		}
		switch kind {
		case isOption:
			f.values[name] = entry{key.Line, value}
		case isSection:
			f.section(name+".", value, options)
		default:
			f.unknown(prefix, key, options)
		}
	})
}

type keyKind int

const (
	isUnknown keyKind = iota
	isOption
	isSection
)

func lookup(options []Option, name string) keyKind {
	for i := range options {
		o := &options[i]
		switch {
		case o.Name == name, o.Secret && o.fileName() == name:
			return isOption
		case strings.HasPrefix(o.Name, name+"."):
			return isSection
		}
	}
	return isUnknown
}

func (f *file) unknown(prefix string, key *yaml.Node, options []Option) {
	name := prefix + key.Value
	if way, ok := refused(name); ok {
		f.fail(key.Line, name+" cannot be set", way)
		return
	}
	var siblings, leaves []string
	byLeaf := map[string]string{}
	for i := range options {
		full := options[i].Name
		if rest, ok := strings.CutPrefix(full, prefix); ok {
			sibling, _, _ := strings.Cut(rest, ".")
			siblings = append(siblings, sibling)
		}
		leaf := full[strings.LastIndex(full, ".")+1:]
		leaves = append(leaves, leaf)
		byLeaf[leaf] = full
	}
	way := "see \"walpost config reference\" for all keys"
	if s, ok := Closest(key.Value, siblings); ok {
		way = fmt.Sprintf("did you mean %q?", prefix+s)
	} else if s, ok := Closest(key.Value, leaves); ok {
		way = fmt.Sprintf("did you mean %q?", byLeaf[s])
	}
	f.fail(key.Line, fmt.Sprintf("unknown key %q", name), way)
}

// mapping calls each for the pairs of n, which must be a mapping without
// duplicate keys. The name is empty for the whole file.
func (f *file) mapping(name string, n *yaml.Node, each func(key, value *yaml.Node)) {
	what := name
	if name == "" {
		what = "the file"
	}
	if n.Kind != yaml.MappingNode {
		f.fail(n.Line, fmt.Sprintf("%s: expected keys and values, found %s", what, found(n)), "write key: value, one a line, indented below it")
		return
	}
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Kind != yaml.ScalarNode || key.ShortTag() == "!!merge" {
			f.fail(key.Line, what+": expected a plain key", "write key: value; anchors and merges are not used")
			continue
		}
		if first, ok := seen[key.Value]; ok {
			f.fail(key.Line, fmt.Sprintf("key %q is given twice, first on line %d", strings.TrimPrefix(name+"."+key.Value, "."), first), "keep one of them")
			continue
		}
		seen[key.Value] = key.Line
		each(key, value)
	}
}

// alias reports aliases: a file that sets some forty values needs none, and
// they can blow up.
func (f *file) alias(name string, n *yaml.Node) bool {
	if n.Kind != yaml.AliasNode {
		return false
	}
	f.fail(n.Line, name+": YAML aliases are not supported", "write the value out, or put it in quotes if it begins with *")
	return true
}

// found names what a node is, without quoting it.
func found(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "keys and values"
	case yaml.SequenceNode:
		return "a list"
	case yaml.AliasNode:
		return "an alias"
	}
	switch n.ShortTag() {
	case "!!null":
		return "nothing"
	case "!!bool":
		return "true or false"
	case "!!int", "!!float":
		return "a number"
	case "!!timestamp":
		return "a date"
	default:
		return "text"
	}
}
