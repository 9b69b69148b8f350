package event

import (
	"time"
)

// recordTime reads a column's text as a record timestamp. It refuses NULL, the
// infinities, dates before 1970 (a Kafka timestamp is a count of milliseconds
// since then that must not be negative) and whatever else is not a time.
func recordTime(typeOID uint32, text []byte) (time.Time, bool) {
	var at time.Time
	var ok bool
	if typeOID == oidInt8 {
		at, ok = parseMillis(text)
	} else {
		at, ok = parseTimestamp(text)
	}
	if !ok || at.Unix() < 0 {
		return time.Time{}, false
	}
	return at, true
}

func parseMillis(text []byte) (time.Time, bool) {
	n := int64(0)
	for _, c := range text {
		d := int64(c) - '0'
		if d < 0 || d > 9 || n > (1<<63-1-d)/10 {
			return time.Time{}, false
		}
		n = n*10 + d
	}
	return time.UnixMilli(n).UTC(), len(text) > 0
}

// parseTimestamp reads what PostgreSQL prints for timestamptz, timestamp and
// date with DateStyle ISO: 2026-12-02, 2026-12-02 05:14:00.123456,
// 2026-12-02 05:14:00+00, with an offset of hours, minutes and (before standard
// time) seconds, and years of more than four digits. Without an offset it is UTC.
// It refuses years before Christ, which no record can have.
func parseTimestamp(text []byte) (time.Time, bool) {
	s := scanner{rest: text}
	year := s.number(4, 6)
	s.expect('-')
	month := s.number(2, 2)
	s.expect('-')
	day := s.number(2, 2)
	var hour, minute, second, nanos, offset int
	if s.skip(' ') || s.skip('T') {
		hour = s.number(2, 2)
		s.expect(':')
		minute = s.number(2, 2)
		s.expect(':')
		second = s.number(2, 2)
		if s.skip('.') {
			nanos = s.fraction()
		}
		offset = s.offset()
	}
	if s.bad || len(s.rest) != 0 {
		return time.Time{}, false
	}
	if month < 1 || month > 12 || day < 1 || hour > 23 || minute > 59 || second > 59 {
		return time.Time{}, false
	}
	at := time.Date(year, time.Month(month), day, hour, minute, second, nanos, time.UTC)
	if at.Day() != day { // time.Date makes 31 April the first of May
		return time.Time{}, false
	}
	return at.Add(-time.Duration(offset) * time.Second), true
}

// scanner takes a timestamp apart; bad stays set once something did not fit.
type scanner struct {
	rest []byte
	bad  bool
}

func (s *scanner) skip(c byte) bool {
	if s.bad || len(s.rest) == 0 || s.rest[0] != c {
		return false
	}
	s.rest = s.rest[1:]
	return true
}

func (s *scanner) expect(c byte) {
	if !s.skip(c) {
		s.bad = true
	}
}

// number reads as many digits as there are, at least least and at most most.
func (s *scanner) number(least, most int) int {
	n, i := 0, 0
	for ; i < len(s.rest) && s.rest[i]-'0' <= 9; i++ {
		if i == most {
			s.bad = true
			return 0
		}
		n = n*10 + int(s.rest[i]-'0')
	}
	if i < least {
		s.bad = true
		return 0
	}
	s.rest = s.rest[i:]
	return n
}

// fraction reads one to nine digits as nanoseconds.
func (s *scanner) fraction() int {
	before := len(s.rest)
	n := s.number(1, 9)
	for range 9 - (before - len(s.rest)) {
		n *= 10
	}
	return n
}

// offset reads Z, ±hh, ±hh:mm or ±hh:mm:ss as seconds east of UTC.
func (s *scanner) offset() int {
	sign := 1
	switch {
	case s.skip('Z'):
		return 0
	case s.skip('-'):
		sign = -1
	case !s.skip('+'):
		return 0
	}
	hour := s.number(2, 2)
	var minute, second int
	if s.skip(':') {
		minute = s.number(2, 2)
		if s.skip(':') {
			second = s.number(2, 2)
		}
	}
	if hour > 23 || minute > 59 || second > 59 {
		s.bad = true
	}
	return sign * (hour*3600 + minute*60 + second)
}
