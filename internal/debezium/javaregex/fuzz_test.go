package javaregex

import (
	"errors"
	"strings"
	"testing"
)

// Whatever the pattern, it compiles or the error says why, and nothing panics.
func FuzzCompile(f *testing.F) {
	for _, s := range []string{`(?<routedByValue>.*)`, `[a-z&&[^m-p]]{2,3}?`, `\Qa\E\x{1f600}\0101`, `(?i:a|b)$`, `[[a-z]`, `\p{Alpha}\cA`} {
		f.Add(s, "outbox.event.${routedByValue}", "User")
	}
	f.Fuzz(func(t *testing.T, pattern, replacement, input string) {
		for _, fold := range []bool{false, true} {
			re, err := compile(pattern, fold)
			if err != nil {
				if e, ok := errors.AsType[*Error](err); !ok || e.Reason == "" || e.Hint() == "" || e.Offset < 0 {
					t.Fatalf("%q: %#v", pattern, err)
				}
				continue
			}
			whole := re.MatchWhole(input)
			r, err := re.Replacement(replacement)
			if err != nil {
				continue
			}
			out, err := r.First(input)
			if err == nil && whole && re.find.FindStringIndex(input) == nil {
				t.Fatalf("%q matches all of %q and nothing in it (%q)", pattern, input, out)
			}
		}
	})
}

func TestErrorNamesThePlace(t *testing.T) {
	t.Parallel()
	_, err := Compile(`aé(?=b)`)
	if err == nil || !strings.Contains(err.Error(), "character 5: look-around") {
		t.Errorf("got %v", err)
	}
	re, err := Compile(`(a)`)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = re.Replacement("é${b}"); err == nil || err.Error() != `"é${b}", character 2: the regular expression has no group "b"` {
		t.Errorf("got %v", err)
	}
}
