package failpoint

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// arm makes a set that ends nothing.
func arm(t *testing.T, text string) (s *set, out *strings.Builder) {
	t.Helper()
	s, err := newSet(text)
	if err != nil {
		t.Fatal(err)
	}
	out = &strings.Builder{}
	s.out = out
	s.die = func() { out.WriteString("died\n") }
	return s, out
}

func TestCrashAtTheNthHit(t *testing.T) {
	t.Parallel()
	s, out := arm(t, "sink.before-settle=crash@3")
	for range 4 {
		if err := s.hit("sink.before-settle"); err != nil {
			t.Error(err)
		}
		if err := s.hit("sink.after-settle"); err != nil {
			t.Error(err)
		}
	}
	if want := "failpoint sink.before-settle: crash at hit 3\ndied\n"; out.String() != want {
		t.Errorf("got %q, want %q", out, want)
	}
}

func TestFail(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"sink.before-send=fail":   "FFF",
		"sink.before-send=fail@2": ".F.",
	} {
		s, _ := arm(t, text)
		got := ""
		for range 3 {
			switch err := s.hit("sink.before-send"); {
			case err == nil:
				got += "."
			case errors.Is(err, syscall.ECONNRESET) && strings.Contains(err.Error(), "failpoint sink.before-send"):
				got += "F"
			default:
				t.Errorf("%s: %v", text, err)
			}
		}
		if got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

func TestStallEndsWithTheFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "wait")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s, out := arm(t, "sink.in-tail=stall:"+file)
	looks := 0
	s.wait = func() {
		if looks++; looks == 3 {
			if err := os.Remove(file); err != nil {
				t.Error(err)
			}
		}
	}
	if err := s.hit("sink.in-tail"); err != nil {
		t.Error(err)
	}
	if looks != 3 {
		t.Errorf("went on after %d looks, want 3", looks)
	}
	if want := "failpoint sink.in-tail: stall at hit 1\nfailpoint sink.in-tail: goes on\n"; out.String() != want {
		t.Errorf("got %q, want %q", out, want)
	}
}

// TestNothingArmed: a build with the tag, and no variable, does nothing.
func TestNothingArmed(t *testing.T) {
	t.Parallel()
	s, out := arm(t, "")
	for _, p := range Points() {
		if err := s.hit(p.Name); err != nil {
			t.Errorf("%s: %v", p.Name, err)
		}
	}
	if out.Len() > 0 {
		t.Error(out)
	}
}
