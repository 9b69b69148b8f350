package cli

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

type hinted struct{ error }

func (hinted) Hint() string { return "do this" }

type list []error

func (l list) Error() string   { return "several" }
func (l list) Errors() []error { return l }
func (l list) ExitCode() int   { return Usage }

func TestExitCode(t *testing.T) {
	t.Parallel()
	plain := errors.New("plain")
	tests := map[string]struct {
		err  error
		want int
	}{
		"none":      {nil, OK},
		"plain":     {plain, Failure},
		"usage":     {UsageError("no", "do"), Usage},
		"exit":      {&Exit{Code: Decision, Err: plain}, Decision},
		"wrapped":   {fmt.Errorf("run: %w", &Exit{Code: Findings, Err: plain}), Findings},
		"outermost": {&Exit{Code: Decision, Err: &Exit{Code: Findings, Err: plain}}, Decision},
		"joined":    {errors.Join(plain, UsageError("no", "")), Usage},
		"list":      {list{plain}, Usage},
	}
	for name, test := range tests {
		if got := ExitCode(test.err); got != test.want {
			t.Errorf("%s: got %d, want %d", name, got, test.want)
		}
	}
}

func TestExitUnwraps(t *testing.T) {
	t.Parallel()
	plain := errors.New("plain")
	if err := (&Exit{Code: 1, Err: plain}); !errors.Is(err, plain) {
		t.Errorf("%v does not wrap its error", err)
	}
}

func TestPrintError(t *testing.T) {
	t.Parallel()
	plain := errors.New("slot is lost")
	tests := map[string]struct {
		err  error
		want string
	}{
		"none":            {nil, ""},
		"plain":           {plain, "error: slot is lost\n"},
		"hint":            {hinted{plain}, "error: slot is lost\nhint: do this\n"},
		"wrapped hint":    {fmt.Errorf("run: %w", hinted{plain}), "error: run: slot is lost\nhint: do this\n"},
		"hint through it": {&Exit{Code: 4, Err: hinted{plain}}, "error: slot is lost\nhint: do this\n"},
		"hint over it":    {&Exit{Code: 4, Err: hinted{plain}, Way: "or that"}, "error: slot is lost\nhint: or that\n"},
		"list":            {fmt.Errorf("load: %w", list{hinted{plain}, plain}), "error: slot is lost\nhint: do this\nerror: slot is lost\n"},
		"many lines":      {errors.New("failed to connect:\n\thost a: no\n\n\thost b: no\n"), "error: failed to connect: host a: no host b: no\n"},
		"secret":          {errors.New("password=hunter2"), "error: password=***\n"},
	}
	for name, test := range tests {
		var b bytes.Buffer
		PrintError(&b, test.err, func(s string) string { return strings.ReplaceAll(s, "hunter2", "***") })
		if got := b.String(); got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
	var b bytes.Buffer
	PrintError(&b, plain, nil)
	PrintWarning(&b, "careful", "")
	PrintWarning(&b, "careful", "look")
	if got, want := b.String(), "error: slot is lost\nwarning: careful\nwarning: careful\nhint: look\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestWriteJSON(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	err := WriteJSON(&b, struct {
		Topic string    `json:"topic"`
		At    time.Time `json:"at"`
	}{"<aggregate_type>", time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)})
	want := "{\n  \"topic\": \"<aggregate_type>\",\n  \"at\": \"2026-01-02T03:04:05Z\"\n}\n"
	if got := b.String(); err != nil || got != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
	if err := WriteJSON(&b, func() {}); err == nil {
		t.Error("a value that JSON cannot hold: got no error")
	}
}

func TestTable(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	table := NewTable(&b)
	table.Row("slot", "active", "# one")
	table.Row("watermark", "0/5A3F2B8", "# two")
	table.Row("evil", "a\tb\n\x1b[31m")
	if err := table.Flush(); err != nil {
		t.Fatal(err)
	}
	want := "slot       active     # one\nwatermark  0/5A3F2B8  # two\nevil       a b  [31m\n"
	if got := b.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestIsTerminal(t *testing.T) {
	t.Parallel()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	file, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for name, w := range map[string]any{"null device": null, "file": file, "buffer": &bytes.Buffer{}, "nothing": nil} {
		if IsTerminal(w) {
			t.Errorf("%s: got a terminal", name)
		}
	}
}
