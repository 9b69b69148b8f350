package column

import "strconv"

// appendDate appends a date as ISO 8601 has it: years beyond 9999 with a sign.
func appendDate(dst []byte, days int64) []byte {
	year, month, day := dateOf(days)
	switch {
	case year > 9999:
		dst = append(dst, '+')
	case year < 0:
		dst, year = append(dst, '-'), -year
	}
	dst = appendPadded(dst, year, 4)
	dst = append(dst, '-')
	dst = appendPadded(dst, month, 2)
	dst = append(dst, '-')
	return appendPadded(dst, day, 2)
}

// appendClock appends a time of day in nanoseconds; without digits, it prints as
// many of the fraction as are needed.
func appendClock(dst []byte, nanos int64, digits int) []byte {
	seconds := nanos / 1e9
	dst = appendPadded(dst, seconds/3600, 2)
	dst = append(dst, ':')
	dst = appendPadded(dst, seconds/60%60, 2)
	dst = append(dst, ':')
	dst = appendPadded(dst, seconds%60, 2)
	fraction := nanos % 1e9
	if digits <= 0 && fraction == 0 {
		return dst
	}
	dst = append(dst, '.')
	start := len(dst)
	dst = appendPadded(dst, fraction, 9)
	if digits > 0 {
		return dst[:start+min(digits, 9)]
	}
	for dst[len(dst)-1] == '0' {
		dst = dst[:len(dst)-1]
	}
	return dst
}

// appendInstant appends date and time in UTC.
func appendInstant(dst []byte, t instant, digits int) []byte {
	days := floor(t.seconds, secondsPerDay)
	dst = appendDate(dst, days)
	dst = append(dst, 'T')
	dst = appendClock(dst, (t.seconds-days*secondsPerDay)*1e9+int64(t.nanos), digits)
	return append(dst, 'Z')
}

func appendPadded(dst []byte, n int64, width int) []byte {
	limit := int64(1)
	for range width - 1 {
		limit *= 10
		if n < limit {
			dst = append(dst, '0')
		}
	}
	if n == 0 {
		return append(dst, '0')
	}
	return strconv.AppendInt(dst, n, 10)
}
