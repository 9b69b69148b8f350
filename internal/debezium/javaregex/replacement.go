package javaregex

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// Replacement is a compiled replacement string. It is safe for concurrent use.
type Replacement struct {
	re    *Regexp
	text  string
	parts []part
}

// part is text, or a group when group is not negative.
type part struct {
	text  string
	group int
}

// Replacement reads a replacement as Matcher.appendReplacement does, which
// refuses a faulty one only when it is used. The error is an *Error.
func (r *Regexp) Replacement(text string) (*Replacement, error) {
	if r.doubt != nil {
		return nil, r.doubt
	}
	out := &Replacement{re: r, text: text}
	fail := func(at int, format string, args ...any) (*Replacement, error) {
		return nil, &Error{Text: text, Offset: utf8.RuneCountInString(text[:at]), Reason: fmt.Sprintf(format, args...), way: wayGroup}
	}
	var plain strings.Builder
	group := func(n int) {
		if plain.Len() > 0 {
			out.parts = append(out.parts, part{plain.String(), -1})
			plain.Reset()
		}
		out.parts = append(out.parts, part{"", n})
	}
	for i := 0; i < len(text); {
		switch c := text[i]; {
		case c == '\\':
			if i++; i == len(text) {
				return fail(i-1, `a \ at the end`)
			}
			plain.WriteByte(text[i])
			i++
		case c != '$':
			plain.WriteByte(c)
			i++
		case i+1 < len(text) && text[i+1] == '{':
			n := 0
			for i+2+n < len(text) && (letter(rune(text[i+2+n])) || digit(rune(text[i+2+n]))) {
				n++
			}
			name := text[i+2 : i+2+n]
			switch {
			case n == 0 || digit(rune(name[0])):
				return fail(i, "${ without the name of a group")
			case i+2+n == len(text) || text[i+2+n] != '}':
				return fail(i, "${%s without }", name)
			case r.find.SubexpIndex(name) < 0:
				return fail(i, "the regular expression has no group %q", name)
			}
			group(r.find.SubexpIndex(name))
			i += n + 3
		case i+1 < len(text) && digit(rune(text[i+1])):
			n := int(text[i+1] - '0')
			if n > r.Groups() {
				return fail(i, "the regular expression has no group %d", n)
			}
			// As many digits as name a group that is there.
			for i += 2; i < len(text) && digit(rune(text[i])) && n*10+int(text[i]-'0') <= r.Groups(); i++ {
				n = n*10 + int(text[i]-'0')
			}
			group(n)
		default:
			return fail(i, "a $ that names no group")
		}
	}
	if plain.Len() > 0 {
		out.parts = append(out.parts, part{plain.String(), -1})
	}
	for _, p := range out.parts {
		if slices.Contains(r.leaky, p.group) {
			return nil, &Error{
				Text: text, Reason: fmt.Sprintf("group %d is inside a repeated group, where Java may keep what an attempt that failed had put there", p.group),
				way: "repeat a group that has no other groups in it, or name another group",
			}
		}
	}
	return out, nil
}

// First is Matcher.replaceFirst: the first match in s, which need not be all of
// s, gives way to the replacement. The error is an *Error, for a string of which
// it is not known what Java does.
func (p *Replacement) First(s string) (string, error) {
	if p.re.dollar && lineBreak.MatchString(s) {
		return "", &Error{Text: p.re.text, Reason: "$ on a value that ends in a line break, where Java's matches twice", way: wayRewrite}
	}
	at := p.re.find.FindStringSubmatchIndex(s)
	if at == nil {
		return s, nil
	}
	var b strings.Builder
	b.WriteString(s[:at[0]])
	for _, part := range p.parts {
		switch {
		case part.group < 0:
			b.WriteString(part.text)
		case at[2*part.group] >= 0:
			b.WriteString(s[at[2*part.group]:at[2*part.group+1]])
		}
	}
	b.WriteString(s[at[1]:])
	return b.String(), nil
}

// String is the replacement as it was given.
func (p *Replacement) String() string { return p.text }

var lineBreak = regexp.MustCompile(`[\n\r\x{85}\x{2028}\x{2029}]\z`)

// ReplaceFirst is Replacement and First in one.
func (r *Regexp) ReplaceFirst(s, replacement string) (string, error) {
	p, err := r.Replacement(replacement)
	if err != nil {
		return "", err
	}
	return p.First(s)
}
