package route

import (
	"fmt"
	"path"
	"slices"

	"github.com/walpost/walpost/internal/event"
)

// Allow says which topics may be written to. The zero value allows all.
type Allow struct{ patterns []string }

// NewAllow checks the patterns: names, or patterns with *, ? and [a-z]. None
// allows all topics.
func NewAllow(patterns []string) (Allow, error) {
	for _, p := range patterns {
		if _, err := path.Match(p, ""); err != nil || p == "" {
			return Allow{}, &OptionError{fmt.Sprintf("allowed topic %q is not a pattern", p), "use a topic's name, or a pattern with *, ? and [a-z]"}
		}
	}
	return Allow{slices.Clone(patterns)}, nil
}

// Has says whether the topic may be written to.
func (a Allow) Has(topic string) bool {
	for _, p := range a.patterns {
		if ok, _ := path.Match(p, topic); ok { // NewAllow has checked the pattern
			return true
		}
	}
	return len(a.patterns) == 0
}

// Reject is what becomes of an event whose topic may not; it does not name the
// event yet.
func (a Allow) Reject(topic string) *event.Reject {
	return &event.Reject{
		Text: fmt.Sprintf("topic %q is not among the allowed ones", topic),
		Way:  "add it to the allowed topics, or correct what the application writes",
	}
}
