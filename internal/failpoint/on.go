//go:build failpoint

package failpoint

import (
	"os"
	"strings"
)

// current is set by Arm, before there is a second goroutine.
var current = &set{}

// Arm arms what the environment asks for. It is called once, before anything
// else.
func Arm(environ []string) error {
	for _, pair := range environ {
		if text, ok := strings.CutPrefix(pair, Env+"="); ok {
			s, err := newSet(text)
			if err != nil {
				return err
			}
			current = s
		}
	}
	_, _ = os.Stderr.WriteString("failpoint: this build is for tests only\n")
	return nil
}

// Hit crashes or stalls if the point is armed for that.
func Hit(name string) { _ = current.hit(name) }

// Fail crashes or stalls, or gives an error.
func Fail(name string) error { return current.hit(name) }
