package column

import (
	"github.com/walpost/walpost/internal/debezium/connect"
)

// driverNumeric: the driver's arrays of numbers have no NaN and no Infinity.
func (c *codec) driverNumeric() {
	convert := c.convert
	c.convert = func(c *codec, s *Scratch, text []byte) (connect.Value, error) {
		if _, _, ok := special(text); ok {
			return connect.Value{}, errSpecialElement
		}
		return convert(c, s, text)
	}
}

// driverTime replaces the conversion of dates and times in arrays, which the JDBC
// driver makes into java.sql.Date, Time and Timestamp before Debezium sees them.
// Those count in the calendar that was Julian until 1582, have no years BC when
// they are taken apart again, and times have milliseconds, or not even those.
func (c *codec) driverTime(t *TypeInfo) {
	switch t.OID {
	case oidDate:
		c.convert = driverDate
	case oidTime:
		c.convert = driverTimeOfDay
	case oidTimetz:
		c.convert = driverTimetz
	case oidTimestamp:
		c.convert = driverTimestamp
	case oidTimestamptz:
		c.convert = driverTimestamptz
	}
}

// The first day of the Gregorian calendar, 15 October 1582.
const gregorian = -141427

// hybridDays counts the days to a date in Java's default calendar.
func hybridDays(year, month, day int64) int64 {
	if days := daysOf(year, month, day); days >= gregorian {
		return days
	}
	if month <= 2 {
		year--
		month += 12
	}
	return year*365 + floor(year, 4) + (153*(month-3)+2)/5 + day - 1 - 719470
}

// hybridDate is a date after it has been through Java's default calendar: the ten
// days that it leaves out in 1582 come later, and the era is lost.
func hybridDate(year, month, day int64) (days int64, ok bool) {
	if y, m, d := dateOf(hybridDays(year, month, day)); hybridDays(year, month, day) >= gregorian {
		year, month, day = y, m, d
	}
	if year <= 0 {
		year = 1 - year
	}
	days = daysOf(year, month, day)
	_, back, _ := dateOf(days)
	return days, back == month // 29 February of a year BC may be none AD
}

// What is left of infinity: 292278994-08-16, and 292269055-12-02 BC without era.
const (
	positiveInfinityDriverDay = 106751991166
	negativeInfinityDriverDay = 106748361128
)

func driverDate(c *codec, s *Scratch, text []byte) (connect.Value, error) {
	switch infinite(text) {
	case 1:
		return c.days(s, positiveInfinityDriverDay)
	case -1:
		return c.days(s, negativeInfinityDriverDay)
	}
	r := read(text)
	year, month, day := r.date()
	year = r.year(year)
	days, ok := hybridDate(year, month, day)
	if !r.end() || !ok {
		return connect.Value{}, errLost
	}
	return c.days(s, days)
}

func driverTimeOfDay(c *codec, s *Scratch, text []byte) (connect.Value, error) {
	r := read(text)
	nanos := r.clock()
	if !r.end() {
		return connect.Value{}, errLost
	}
	return c.clock(s, dayTime(nanos)/1_000_000*1_000_000)
}

func driverTimetz(_ *codec, s *Scratch, text []byte) (connect.Value, error) {
	r := read(text)
	nanos := r.clock()
	offset, _ := r.offset()
	if !r.end() {
		return connect.Value{}, errLost
	}
	start := len(s.bytes)
	s.bytes = append(appendClock(s.bytes, dayTime(nanos-offset*1e9)/1e9*1e9, 0), 'Z')
	return s.text(start), nil
}

func driverTimestamp(c *codec, s *Scratch, text []byte) (connect.Value, error) {
	if sign := infinite(text); sign != 0 {
		return c.endOfTime(s, sign)
	}
	r := read(text)
	year, month, day := r.date()
	r.need(' ')
	nanos := r.clock()
	year = r.year(year)
	if !r.end() {
		return connect.Value{}, errLost
	}
	return c.instant(s, at(hybridDays(year, month, day), nanos))
}

func driverTimestamptz(c *codec, s *Scratch, text []byte) (connect.Value, error) {
	start := len(s.bytes)
	switch infinite(text) {
	case 1:
		return connect.Value{Valid: true, Bytes: text}, nil
	case -1:
		s.bytes = appendInstant(s.bytes, at(negativeInfinityDriverDay, 23*3600*1e9), c.size.scale)
		return s.text(start), nil
	}
	t, ok := parseTimestamptz(text)
	if !ok {
		return connect.Value{}, errLost
	}
	// The session is in UTC, so the text's date is the one that counts.
	day := floor(t.seconds, secondsPerDay)
	hybrid, ok := hybridDate(dateOf(day))
	if !ok {
		return connect.Value{}, errLost
	}
	t.seconds += (hybrid - day) * secondsPerDay
	s.bytes = appendInstant(s.bytes, t, c.size.scale)
	return s.text(start), nil
}
