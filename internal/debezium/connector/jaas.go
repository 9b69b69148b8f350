package connector

import "strings"

// jaas is one entry of a JAAS configuration, as sasl.jaas.config has it.
type jaas struct {
	module  string
	options map[string]string
}

// parseJAAS reads: module flag name=value…;
func parseJAAS(text string) (jaas, bool) {
	j := jaas{options: map[string]string{}}
	t := &jaasTokens{text: text}
	var ok bool
	if j.module, ok = t.word(); !ok {
		return jaas{}, false
	}
	if _, ok = t.word(); !ok { // required, sufficient: of no effect with one module
		return jaas{}, false
	}
	for {
		if t.sign(';') {
			return j, strings.TrimSpace(t.text) == ""
		}
		name, ok := t.word()
		if !ok || !t.sign('=') {
			return jaas{}, false
		}
		value, ok := t.word()
		if !ok {
			return jaas{}, false
		}
		j.options[name] = value
	}
}

type jaasTokens struct{ text string }

// sign takes a character if it comes next.
func (t *jaasTokens) sign(c byte) bool {
	t.text = strings.TrimLeft(t.text, " \t\r\n")
	if t.text == "" || t.text[0] != c {
		return false
	}
	t.text = t.text[1:]
	return true
}

// word takes a word, which may be in quotes with backslashes in it.
func (t *jaasTokens) word() (string, bool) {
	for _, quote := range []byte{'"', '\''} {
		if !t.sign(quote) {
			continue
		}
		var b strings.Builder
		for i := 0; i < len(t.text); i++ {
			switch c := t.text[i]; {
			case c == quote:
				t.text = t.text[i+1:]
				return b.String(), true
			case c == '\\' && i+1 < len(t.text):
				i++
				b.WriteByte(t.text[i])
			default:
				b.WriteByte(c)
			}
		}
		return "", false
	}
	end := strings.IndexAny(t.text, " \t\r\n=;\"'")
	if end < 0 {
		end = len(t.text)
	}
	word := t.text[:end]
	t.text = t.text[end:]
	return word, word != ""
}
