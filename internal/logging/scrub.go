package logging

import "regexp"

// mask is what a secret is replaced with.
const mask = "********"

type rule struct {
	pattern *regexp.Regexp
	to      string
}

// The patterns never change, so they are compiled once, when the package is
// loaded; compiling them per line would cost more than the line.
var rules = []rule{
	// postgres://user:password@host, up to the last @ of the word: a password
	// with an @ in it that should have been encoded goes whole.
	{regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*://[^\s:/@]*):[^\s"'` + "`" + `]*@`), "$1:" + mask + "@"},
	// sasl.jaas.config holds user and password in a syntax of its own.
	{regexp.MustCompile(`(?i)(sasl\.jaas\.config\s*[=:]\s*)[^\n]*`), "${1}" + mask},
	// {"password":"…"}
	{regexp.MustCompile(`(?i)("[\w.-]*(?:password|passwd|secret|token)"\s*:\s*)"(?:[^"\\]|\\.)*"`), `${1}"` + mask + `"`},
	// password=…, sslpassword='…', and password: … in a dump of settings
	{regexp.MustCompile(`(?i)\b([\w.-]*(?:password|passwd|secret|token)\s*=\s*)(?:'(?:[^'\\]|\\.)*'?|"(?:[^"\\]|\\.)*"?|[^\s&'"` + "`" + `]+)`), "${1}" + mask},
	// Authorization: Bearer …
	{regexp.MustCompile(`(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{8,}`), "$1 " + mask},
}

// Scrub masks what looks like a secret in a text that came from elsewhere.
func Scrub(text string) string {
	for _, r := range rules {
		text = r.pattern.ReplaceAllString(text, r.to)
	}
	return text
}
