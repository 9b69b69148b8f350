package connector

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// verdict is what is decided about a key with its value.
type verdict struct {
	decision   Decision
	severity   Severity
	does       string
	difference string
	way        string
}

// decide decides about a key, and puts what it means into the Spec.
type decide func(r *reading, s *setting) verdict

// rule is one row of the tables of keys.
type rule struct {
	key string // a * at the end stands for any text
	def string // Debezium's default
	// show lists the key when it is not set, because its default matters.
	show bool
	// own says that Convert does not keep the key, because walpost has an option
	// of its own for it or needs it no more.
	own    bool
	decide decide
}

// same is a verdict on what walpost does like Debezium.
func same(does string) verdict {
	return verdict{decision: Honoured, severity: SeveritySame, does: does}
}

// noted is like same, with something worth reading once.
func noted(does, difference string) verdict {
	return verdict{decision: Honoured, severity: SeverityNote, does: does, difference: difference}
}

// differs is a verdict on what walpost does in another way.
func differs(decision Decision, does, difference, way string) verdict {
	return verdict{decision: decision, severity: SeverityDiffers, does: does, difference: difference, way: way}
}

// ignored is a verdict on what does not matter.
func ignored(why string) verdict {
	return verdict{decision: Ignored, severity: SeverityNote, does: why}
}

// moot is a verdict on what does not matter and has the default's value.
func moot(why string) verdict {
	return verdict{decision: Ignored, severity: SeveritySame, does: why}
}

// refused is a verdict that walpost does not run with it.
func refused(why, way string) verdict {
	return verdict{decision: Refused, severity: SeverityRefused, does: why, way: way}
}

// ignore always ignores.
func ignore(why string) decide {
	return func(*reading, *setting) verdict { return ignored(why) }
}

// refuse always refuses.
func refuse(why, way string) decide {
	return func(*reading, *setting) verdict { return refused(why, way) }
}

// refuseUnless refuses everything but the harmless values, which change nothing.
func refuseUnless(harmless []string, why, way string) decide {
	return func(_ *reading, s *setting) verdict {
		v := strings.TrimSpace(s.value)
		if slices.ContainsFunc(harmless, func(h string) bool { return strings.EqualFold(h, v) }) {
			return moot("the default: nothing is changed")
		}
		return refused(why, way)
	}
}

// text takes any value.
func text(does string, put func(r *reading, v string)) decide {
	return func(r *reading, s *setting) verdict {
		put(r, strings.TrimSpace(s.value))
		return same(does)
	}
}

// boolean takes true and false, as Debezium does: yes and 1 are errors.
func boolean(does string, put func(r *reading, v bool)) decide {
	return parsed(parseBool, does, put)
}

// oneOf takes one of the values, in any case.
func oneOf(values []string, does string, put func(r *reading, v string)) decide {
	return parsed(func(s *setting) (string, string) {
		v := strings.TrimSpace(s.value)
		for _, want := range values {
			if strings.EqualFold(v, want) {
				return want, ""
			}
		}
		return "", "write one of " + strings.Join(values, ", ")
	}, does, put)
}

// millis takes a number of milliseconds.
func millis(does string, put func(r *reading, v time.Duration)) decide {
	return parsed(parseMillis, does, put)
}

// number takes a whole number, at least least.
func number(least int, does string, put func(r *reading, v int)) decide {
	return parsed(func(s *setting) (int, string) { return parseInt(s, least) }, does, put)
}

func parsed[T any](parse func(s *setting) (v T, way string), does string, put func(r *reading, v T)) decide {
	return func(r *reading, s *setting) verdict {
		v, way := parse(s)
		if way != "" {
			return malformed(s, way)
		}
		put(r, v)
		return same(does)
	}
}

// malformed is a verdict on a value that Debezium does not take either.
func malformed(s *setting, way string) verdict {
	return refused(fmt.Sprintf("Debezium does not take the value %q", s.show()), way)
}

func parseBool(s *setting) (v bool, way string) {
	switch strings.ToLower(strings.TrimSpace(s.value)) {
	case "true":
		return true, ""
	case "false":
		return false, ""
	}
	return false, "write true or false"
}

func parseInt(s *setting, least int) (v int, way string) {
	n, err := strconv.ParseInt(strings.TrimSpace(s.value), 10, 32)
	if err != nil || int(n) < least {
		return 0, fmt.Sprintf("write a whole number, at least %d", least)
	}
	return int(n), ""
}

func parseMillis(s *setting) (v time.Duration, way string) {
	n, err := strconv.ParseInt(strings.TrimSpace(s.value), 10, 64)
	if err != nil || n < 0 || n > int64(1<<63-1)/int64(time.Millisecond) {
		return 0, "write a number of milliseconds"
	}
	return time.Duration(n) * time.Millisecond, ""
}
