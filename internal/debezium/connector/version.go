package connector

import (
	"fmt"
	"regexp"
	"strconv"
)

// DefaultVersion is the version of Debezium that is reproduced where none is
// named.
const DefaultVersion = "3.6"

// version of Debezium, of which major and minor decide about bytes.
type version struct{ major, minor int }

func (v version) atLeast(major, minor int) bool {
	return v.major > major || v.major == major && v.minor >= minor
}

func (v version) String() string { return fmt.Sprintf("%d.%d", v.major, v.minor) }

var versionText = regexp.MustCompile(`^v?(\d{1,3})\.(\d{1,3})(?:[.-].*)?$`)

// parseVersion takes 3.6, and 3.6.1.Final as releases are called.
func parseVersion(text string) (version, error) {
	if text == "" {
		text = DefaultVersion
	}
	const way = "write the version that is to be reproduced, from 2.0 to 3.7, such as \"3.6\""
	m := versionText.FindStringSubmatch(text)
	if m == nil {
		return version{}, &Error{Text: fmt.Sprintf("debezium.version: %q is not a version", text), Way: way}
	}
	major, _ := strconv.Atoi(m[1])
	minor, _ := strconv.Atoi(m[2])
	v := version{major, minor}
	if !v.atLeast(2, 0) || v.atLeast(3, 8) {
		return version{}, &Error{Text: fmt.Sprintf("debezium.version: version %s is not one that walpost knows", v), Way: way}
	}
	return v, nil
}

// contextHeaders is how many __debezium.context.* headers a version adds.
func (v version) contextHeaders() int {
	switch {
	case v.atLeast(3, 4):
		return 4
	case v.atLeast(3, 2):
		return 3
	default:
		return 0
	}
}
