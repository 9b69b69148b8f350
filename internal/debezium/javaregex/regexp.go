package javaregex

import "regexp"

// Regexp is a compiled pattern. It is safe for concurrent use.
type Regexp struct {
	text   string
	whole  *regexp.Regexp
	find   *regexp.Regexp
	dollar bool
	leaky  []int  // groups that no replacement may name
	doubt  *Error // what stands against any replacement
}

// Compile reads a pattern as Pattern.compile(pattern) does. The error is an
// *Error.
func Compile(pattern string) (*Regexp, error) { return compile(pattern, false) }

// CompileFold reads a pattern as Pattern.compile(pattern, CASE_INSENSITIVE) does.
func CompileFold(pattern string) (*Regexp, error) { return compile(pattern, true) }

func compile(pattern string, fold bool) (*Regexp, error) {
	p := parser{text: pattern, fold: fold}
	source, err := p.parse()
	if err != nil {
		return nil, err
	}
	// What is left to fail are Go's limits: repetitions, and the size of them all.
	find, err := regexp.Compile(source)
	if err != nil {
		return nil, &Error{Text: pattern, Reason: "too many repetitions: Go's limit is 1000, also for repetitions in repetitions", way: wayRewrite}
	}
	whole, err := regexp.Compile(`\A(?:` + source + `)\z`)
	if err != nil {
		return nil, &Error{Text: pattern, Reason: "too large", way: wayRewrite}
	}
	return &Regexp{text: pattern, whole: whole, find: find, dollar: p.dollar, leaky: p.leaky, doubt: p.doubt}, nil
}

// String is the pattern as it was given.
func (r *Regexp) String() string { return r.text }

// MatchWhole is Matcher.matches: all of s.
func (r *Regexp) MatchWhole(s string) bool { return r.whole.MatchString(s) }

// Groups is the number of capturing groups.
func (r *Regexp) Groups() int { return r.find.NumSubexp() }
