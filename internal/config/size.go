package config

import (
	"math"
	"strconv"
	"strings"
)

// Size is a number of bytes.
type Size int64

type unit struct {
	name  string
	bytes int64
}

// units in the order in which a size is printed: the first that divides it.
func units() []unit {
	return []unit{
		{"GiB", 1 << 30}, {"GB", 1e9},
		{"MiB", 1 << 20}, {"MB", 1e6},
		{"KiB", 1 << 10}, {"kB", 1e3},
	}
}

// String gives the size with the largest unit that holds it exactly.
func (s Size) String() string {
	for _, u := range units() {
		if s > 0 && int64(s)%u.bytes == 0 {
			return strconv.FormatInt(int64(s)/u.bytes, 10) + u.name
		}
	}
	return strconv.FormatInt(int64(s), 10)
}

const sizeWay = "write a number of bytes, or one with a unit: 1000000, 16MB, 32MiB"

func parseSize(text string) (Size, *fault) {
	digits, suffix := strings.TrimSpace(text), ""
	if i := strings.IndexFunc(digits, func(r rune) bool { return r < '0' || r > '9' }); i >= 0 {
		digits, suffix = digits[:i], strings.TrimSpace(digits[i:])
	}
	bad := &fault{quote(text) + " is not a size", sizeWay}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return 0, bad
	}
	if suffix == "" || strings.EqualFold(suffix, "B") {
		return Size(n), nil
	}
	for _, u := range units() {
		if strings.EqualFold(suffix, u.name) {
			if n > math.MaxInt64/u.bytes {
				return 0, bad
			}
			return Size(n * u.bytes), nil
		}
	}
	return 0, bad
}
