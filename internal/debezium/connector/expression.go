package connector

import (
	"fmt"
	"strings"
)

// maxExpansion bounds expressions that name each other, as Quarkus does.
const maxExpansion = 32

// maxSteps and maxExpanded bound what they can cost, and grow to.
const (
	maxSteps    = 10_000
	maxExpanded = 1 << 16
)

// expander undoes MicroProfile's expressions: ${name}, ${name:default}, and $$
// for a dollar.
type expander struct {
	env  map[string]string
	file map[string]string // the same file's keys, not expanded
	// secret is set when an expression named something secret.
	secret bool
	steps  int
}

// expand gives the value as Debezium Server sees it.
func (x *expander) expand(value string) (string, error) {
	x.secret, x.steps = false, 0
	text, _, err := x.text(strings.ReplaceAll(value, `\$`, "$$"), "", 0)
	return text, err
}

// text reads up to one of the characters of stop, which it leaves in rest.
func (x *expander) text(s, stop string, depth int) (text, rest string, err error) {
	if x.steps++; depth > maxExpansion || x.steps > maxSteps {
		return "", "", &Error{Text: "its expressions go round in a circle", Way: "write the value out"}
	}
	var b strings.Builder
	for s != "" {
		switch {
		case strings.HasPrefix(s, "$$"):
			b.WriteByte('$')
			s = s[2:]
		case strings.HasPrefix(s, "${"):
			v, after, err := x.reference(s[2:], depth)
			if err != nil {
				return "", "", err
			}
			b.WriteString(v)
			s = after
		case stop != "" && stop[0] == ':' && strings.HasPrefix(s, "::"):
			b.WriteString("::") // part of a name: the handler of a secret key
			s = s[2:]
		case strings.IndexByte(stop, s[0]) >= 0:
			return b.String(), s, nil
		default:
			b.WriteByte(s[0])
			s = s[1:]
		}
		if b.Len() > maxExpanded {
			return "", "", &Error{Text: "it expands to more than 64 KiB", Way: "write the value out"}
		}
	}
	return b.String(), "", nil
}

// reference reads what follows ${, with the closing brace.
func (x *expander) reference(s string, depth int) (value, rest string, err error) {
	name, rest, err := x.text(s, ":}", depth+1)
	if err != nil {
		return "", "", err
	}
	hasDefault, otherwise := strings.HasPrefix(rest, ":"), ""
	if hasDefault {
		// What stands for a default is read for its end even when it is not needed;
		// a fault in it is one only when it is.
		var bad error
		after := ""
		otherwise, after, bad = x.text(rest[1:], "}", depth+1)
		if bad != nil {
			if _, found := x.lookup(name); !found {
				return "", "", bad
			}
			if after, err = skipBraces(rest[1:]); err != nil {
				return "", "", err
			}
		}
		rest = after
	}
	if !strings.HasPrefix(rest, "}") {
		return "", "", &Error{Text: "a ${ has no }", Way: "close it, or write $${ where the text itself is meant"}
	}
	rest = rest[1:]
	if strings.Contains(name, "::") {
		return "", "", &Error{Text: "its expression needs a secret key handler, which walpost does not have", Way: "write ${NAME} and set the variable"}
	}
	if v, ok := x.lookup(name); ok {
		x.secret = x.secret || isSecretName(name)
		value, _, err := x.text(strings.ReplaceAll(v, `\$`, "$$"), "", depth+1)
		return value, rest, err
	}
	if !hasDefault {
		return "", "", &Error{
			Text: fmt.Sprintf("${%s}: neither a variable nor a key of that name is set", name),
			Way:  "set it where walpost runs; where the text itself is meant, write $${" + name + "}",
		}
	}
	return otherwise, rest, nil
}

// skipBraces gives what begins with the brace that closes s.
func skipBraces(s string) (string, error) {
	depth := 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '{':
			depth++
		case '}':
			if depth == 0 {
				return s[i:], nil
			}
			depth--
		}
	}
	return "", &Error{Text: "a ${ has no }", Way: "close it"}
}

// lookup asks the environment, as MicroProfile names variables, then the file.
func (x *expander) lookup(name string) (string, bool) {
	if name == "" {
		return "", false
	}
	plain := strings.Map(func(c rune) rune {
		if c < 0x80 && (c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9') {
			return c
		}
		return '_'
	}, name)
	for _, variable := range []string{name, plain, strings.ToUpper(plain)} {
		if v, ok := x.env[variable]; ok {
			return v, true
		}
	}
	v, ok := x.file[name]
	return v, ok
}
