package javaregex

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"testing"
)

// vector is a line of testdata/vectors.jsonl, which testdata/Vectors.java makes.
type vector struct {
	Pattern     string               `json:"p"`
	Fold        bool                 `json:"f"`
	Compiles    bool                 `json:"ok"`
	Replacement string               `json:"r"`
	Cases       [][3]json.RawMessage `json:"c"`
}

func readVectors(t *testing.T, path string) []vector {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var list []vector
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var v vector
		if err := json.Unmarshal(lines.Bytes(), &v); err != nil {
			t.Fatalf("%s: %v", lines.Bytes(), err)
		}
		list = append(list, v)
	}
	return list
}

// What Java does is what we do, or we refuse.
func TestVectors(t *testing.T) {
	t.Parallel()
	path := "testdata/vectors.jsonl"
	if more := os.Getenv("JAVAREGEX_VECTORS"); more != "" {
		path = more // of another seed
	}
	compiled, replaces, known, refused := 0, 0, 0, map[string]int{}
	for _, v := range readVectors(t, path) {
		re, err := compile(v.Pattern, v.Fold)
		if v.Compiles {
			known++
		}
		if err != nil {
			if e, ok := err.(*Error); !ok || e.Reason == "" || e.Hint() == "" {
				t.Errorf("%q: the error %v says nothing", v.Pattern, err)
			} else if v.Compiles {
				refused[e.Reason]++
				if e.way == wayFault {
					t.Logf("%q is refused as a fault, and Java accepts it: %v", v.Pattern, err)
				}
			}
			continue
		}
		if !v.Compiles {
			t.Errorf("%q is accepted, Java refuses it", v.Pattern)
			continue
		}
		compiled++
		if re.doubt == nil {
			replaces++
		}
		checkCases(t, v, re)
	}
	if replaces*2 < known {
		t.Errorf("%d of %d patterns that Java accepts can be used to replace: too few", replaces, known)
	}
	t.Logf("%d replace, %d of %d patterns that Java accepts; refused: %v", replaces, compiled, known, refused)
	if compiled*3 < known*2 {
		t.Errorf("%d of %d patterns that Java accepts: too few", compiled, known)
	}
}

func checkCases(t *testing.T, v vector, re *Regexp) {
	t.Helper()
	for _, c := range v.Cases {
		var input string
		var matches bool
		var replaced *string
		for i, into := range []any{&input, &matches, &replaced} {
			if err := json.Unmarshal(c[i], into); err != nil {
				t.Fatal(err)
			}
		}
		if got := re.MatchWhole(input); got != matches {
			t.Errorf("%q (fold %t) matches %q: got %t, want %t", v.Pattern, v.Fold, input, got, matches)
		}
		if replaced == nil {
			if got, err := re.ReplaceFirst(input, v.Replacement); err == nil {
				t.Errorf("%q in %q by %q: got %q, Java throws", v.Pattern, input, v.Replacement, got)
			}
			continue
		}
		got, err := re.ReplaceFirst(input, v.Replacement)
		if err != nil {
			// Java's fault shows when it finds something; ours before.
			if *replaced != input && !(re.dollar && lineBreak.MatchString(input)) && re.doubt == nil && len(re.leaky) == 0 {
				t.Errorf("%q in %q by %q: %v, want %q", v.Pattern, input, v.Replacement, err, *replaced)
			}
		} else if got != *replaced {
			t.Errorf("%q in %q by %q: got %q, want %q", v.Pattern, input, v.Replacement, got, *replaced)
		}
	}
}
