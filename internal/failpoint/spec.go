package failpoint

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Env is the environment variable that arms points.
const Env = "WALPOST_FAILPOINTS"

// action is what happens at an armed point.
type action string

const (
	crash action = "crash"
	stall action = "stall"
	fail  action = "fail"
)

// spec is what one entry of the variable asks for.
type spec struct {
	action action
	until  string // of a stall: as long as this file is there; empty: for ever
	nth    int64  // 0: each time
}

// parse reads the variable. Its errors are for whoever has set it.
func parse(text string) (map[string]spec, error) {
	specs := make(map[string]spec)
	for entry := range strings.SplitSeq(text, ";") {
		if entry = strings.TrimSpace(entry); entry == "" {
			continue
		}
		name, rest, ok := strings.Cut(entry, "=")
		if !ok {
			return nil, bad(entry, "nothing says what is to happen there")
		}
		points := Points()
		i := slices.IndexFunc(points, func(p Point) bool { return p.Name == name })
		if i < 0 {
			return nil, bad(entry, fmt.Sprintf("there is no point %q", name))
		}
		if _, twice := specs[name]; twice {
			return nil, bad(entry, fmt.Sprintf("point %q is given twice", name))
		}
		s, why := parseSpec(rest)
		if why != "" {
			return nil, bad(entry, why)
		}
		if s.action == fail && !points[i].Fails {
			return nil, bad(entry, fmt.Sprintf("nothing can fail at %q", name))
		}
		specs[name] = s
	}
	return specs, nil
}

// parseSpec reads action[:path][@n]; why says what is wrong with it.
func parseSpec(text string) (s spec, why string) {
	// The last @ counts only if a number follows: a path may contain one.
	if at := strings.LastIndexByte(text, '@'); at >= 0 && !strings.ContainsRune(text[at:], '/') {
		n, err := strconv.ParseInt(text[at+1:], 10, 64)
		if err != nil || n < 1 {
			return s, fmt.Sprintf("%q is not a number from 1 on", text[at+1:])
		}
		text, s.nth = text[:at], n
	}
	name, path, hasPath := strings.Cut(text, ":")
	s.action, s.until = action(name), path
	switch {
	case s.action != crash && s.action != stall && s.action != fail:
		return s, fmt.Sprintf("%q is not an action", name)
	case hasPath && s.action != stall:
		return s, fmt.Sprintf("%s takes no file", name)
	case hasPath && path == "":
		return s, "the file's name is missing"
	}
	return s, ""
}

// SpecError says what is wrong with the variable.
type SpecError struct{ Entry, Reason string }

func bad(entry, reason string) error { return &SpecError{entry, reason} }

func (e *SpecError) Error() string { return fmt.Sprintf("%s: %q: %s", Env, e.Entry, e.Reason) }

// Hint says what is right.
func (e *SpecError) Hint() string {
	var names []string
	for _, p := range Points() {
		names = append(names, p.Name)
	}
	return "write point=crash, point=stall, point=stall:FILE or point=fail, each with @N for the Nth time only, separated by semicolons; points: " +
		strings.Join(names, ", ")
}
