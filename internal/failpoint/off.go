//go:build !failpoint

package failpoint

// Arm does nothing: nothing can be armed in this build.
func Arm([]string) error { return nil }

// Hit does nothing.
func Hit(string) {}

// Fail gives nil.
func Fail(string) error { return nil }
