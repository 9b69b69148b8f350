package quickstart

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
)

// block is a fenced block of the page.
type block struct {
	kind     string // sh, text or go
	terminal string
	text     string
	line     int // on which it begins
}

func (b block) String() string { return fmt.Sprintf("docs/quickstart.md:%d", b.line) }

var heading = regexp.MustCompile(`^# Terminal (\d+)\n`)

// parse gives the blocks of a page in order. A block of text without a terminal
// of its own belongs to that of the commands before it.
func parse(page string) ([]block, error) {
	var blocks []block
	var open *block
	terminal := ""
	line := 0
	for text := range strings.Lines(page) {
		line++
		kind, fence := strings.CutPrefix(strings.TrimSpace(text), "```")
		switch {
		case fence && open == nil:
			open = &block{kind: kind, line: line}
		case fence:
			if match := heading.FindStringSubmatch(open.text); match != nil {
				open.terminal, open.text = match[1], open.text[len(match[0]):]
			}
			switch {
			case open.kind == "sh" && open.terminal == "":
				return nil, fmt.Errorf("%s: commands without a terminal: begin with # Terminal N", open)
			case open.kind == "sh":
				terminal = open.terminal
			case open.kind == "text" && open.terminal == "":
				open.terminal = terminal
			case open.kind != "text" && open.kind != "go":
				return nil, fmt.Errorf("%s: nothing checks a block of %q: use sh, text or go", open, open.kind)
			}
			blocks = append(blocks, *open)
			open = nil
		case open != nil:
			open.text += text
		}
	}
	if open != nil {
		return nil, fmt.Errorf("%s: the block does not end", open)
	}
	return blocks, nil
}

// page reads the quickstart.
func page(t *testing.T) []block {
	t.Helper()
	text, err := os.ReadFile("../../docs/quickstart.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks, err := parse(string(text))
	if err != nil {
		t.Fatal(err)
	}
	return blocks
}

// flush is a text without the indentation of its lines.
func flush(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(strings.TrimLeft(line, "\t "))
	}
	return b.String()
}

// TestCodeIsThatOfTheExamples: what the page shows is in a program that runs.
func TestCodeIsThatOfTheExamples(t *testing.T) {
	t.Parallel()
	var sources strings.Builder
	for _, name := range []string{"orders", "billing", "again"} {
		source, err := os.ReadFile("../../docs/examples/go/" + name + "/main.go")
		if err != nil {
			t.Fatal(err)
		}
		sources.Write(source)
	}
	code := 0
	for _, b := range page(t) {
		if b.kind != "go" {
			continue
		}
		code++
		if !strings.Contains(flush(sources.String()), flush(b.text)) {
			t.Errorf("%s: no example has this code:\n%s", b, b.text)
		}
	}
	if code == 0 {
		t.Error("the page shows no code")
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ page, want string }{
		"no terminal": {"```sh\nls\n```\n", "docs/quickstart.md:1: commands without a terminal: begin with # Terminal N"},
		"unchecked":   {"\n```json\n{}\n```\n", `docs/quickstart.md:2: nothing checks a block of "json": use sh, text or go`},
		"no end":      {"```go\nx := 1\n", "docs/quickstart.md:1: the block does not end"},
	} {
		if _, err := parse(tc.page); err == nil || err.Error() != tc.want {
			t.Errorf("%s: got %v, want %s", name, err, tc.want)
		}
	}
}
