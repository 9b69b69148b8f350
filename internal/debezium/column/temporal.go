package column

import (
	"github.com/walpost/walpost/internal/debezium/connect"
)

// What stands for infinity: the JDBC driver has it as milliseconds, which
// Debezium reads as microseconds in timestamps, and as two days of its own in
// dates.
const (
	positiveInfinity = 9223372036825200000
	negativeInfinity = -9223372036832400000

	positiveInfinityDay = -2147472692
	negativeInfinityDay = -2147472691
)

// infinite tells infinity (1) and -infinity (-1).
func infinite(text []byte) int {
	switch string(text) {
	case "infinity":
		return 1
	case "-infinity":
		return -1
	}
	return 0
}

// buildTime does dates and times.
func (b *builder) buildTime(c *codec, t *TypeInfo) bool {
	c.zero, c.nested = zeroNumber, errDimension
	switch t.OID {
	case oidDate:
		c.schema, c.convert = dateSchema(c.time), date
		if c.time == timeISO {
			c.zero = words("1970-01-01Z")
		}
	case oidTime:
		c.schema, c.convert = timeSchema(c.time, c.size.scale), timeOfDay
		if c.time == timeISO {
			c.zero = words("00:00:00Z")
		}
	case oidTimestamp:
		c.schema, c.convert = timestampSchema(c.time, c.size.scale), timestamp
		if c.time == timeISO {
			c.zero = words("1970-01-01T00:00:00Z")
		}
	case oidTimetz:
		c.schema, c.convert, c.zero = named(connect.String, nameZonedTime), timetz, words("00:00:00Z")
	case oidTimestamptz:
		c.schema, c.convert, c.zero = named(connect.String, nameZonedTimestamp), timestamptz, words("1970-01-01T00:00:00Z")
	case oidInterval:
		c.schema, c.convert = named(connect.Int64, nameMicroDuration), intervalMicros
		if c.intervalISO {
			c.schema, c.convert, c.zero = named(connect.String, nameInterval), intervalText, words("P0Y0M0DT0H0M0S")
		}
	default:
		return false
	}
	if b.element {
		c.driverTime(t)
	}
	return true
}

func dateSchema(m timeMode) *connect.Schema {
	switch m {
	case timeISO:
		return named(connect.String, nameISODate)
	case timeConnect:
		return named(connect.Int32, connect.NameDate)
	}
	return named(connect.Int32, nameDate)
}

func timeSchema(m timeMode, precision int) *connect.Schema {
	switch {
	case m == timeISO:
		return named(connect.String, nameISOTime)
	case m == timeConnect:
		return named(connect.Int32, connect.NameTime)
	case m == timeNanos:
		return named(connect.Int64, nameNanoTime)
	case m == timeAdaptive && precision <= 3:
		return named(connect.Int32, nameTime)
	}
	return named(connect.Int64, nameMicroTime)
}

func timestampSchema(m timeMode, precision int) *connect.Schema {
	switch {
	case m == timeISO:
		return named(connect.String, nameISOTimestamp)
	case m == timeConnect:
		return named(connect.Int64, connect.NameTimestamp)
	case m == timeNanos:
		return named(connect.Int64, nameNanoTimestamp)
	case m != timeMicros && precision <= 3:
		return named(connect.Int64, nameTimestamp)
	}
	return named(connect.Int64, nameMicroTimestamp)
}

func date(c *codec, s *Scratch, text []byte) (connect.Value, error) {
	switch infinite(text) {
	case 1:
		return c.days(s, positiveInfinityDay)
	case -1:
		return c.days(s, negativeInfinityDay)
	}
	days, ok := parseDate(text)
	if !ok {
		return connect.Value{}, errText
	}
	return c.days(s, days)
}

// days is the value of a date. Java casts to int, which the largest date in use
// does not notice.
func (c *codec) days(s *Scratch, days int64) (connect.Value, error) {
	if c.time != timeISO {
		return connect.Value{Valid: true, Int: int64(int32(days))}, nil
	}
	start := len(s.bytes)
	s.bytes = append(appendDate(s.bytes, days), 'Z')
	return s.text(start), nil
}

func timeOfDay(c *codec, s *Scratch, text []byte) (connect.Value, error) {
	r := read(text)
	nanos := r.clock()
	if !r.end() {
		return connect.Value{}, errLost
	}
	return c.clock(s, nanos)
}

// clock is the value of a time of day.
func (c *codec) clock(s *Scratch, nanos int64) (connect.Value, error) {
	v := connect.Value{Valid: true}
	switch c.schema.Name {
	case nameISOTime:
		start := len(s.bytes)
		s.bytes = append(appendClock(s.bytes, nanos%nanosPerDay, 0), 'Z')
		return s.text(start), nil
	case nameTime, connect.NameTime:
		v.Int = nanos / 1_000_000
	case nameMicroTime:
		v.Int = nanos / 1_000
	default:
		v.Int = nanos
	}
	return v, nil
}

func timestamp(c *codec, s *Scratch, text []byte) (connect.Value, error) {
	if sign := infinite(text); sign != 0 {
		return c.endOfTime(s, sign)
	}
	t, ok := parseTimestamp(text)
	if !ok {
		return connect.Value{}, errText
	}
	return c.instant(s, t)
}

// endOfTime is the value of an infinite timestamp.
func (c *codec) endOfTime(s *Scratch, sign int) (connect.Value, error) {
	t := instant{positiveInfinity / 1_000_000, 200_000_000}
	if sign < 0 {
		t = instant{negativeInfinity/1_000_000 - 1, 600_000_000}
	}
	if c.schema.Name == nameNanoTimestamp {
		v := connect.Value{Valid: true, Int: 1<<63 - 1}
		if sign < 0 {
			v.Int = -1 << 63
		}
		return v, nil
	}
	return c.instant(s, t)
}

// instant is the value of a timestamp.
func (c *codec) instant(s *Scratch, t instant) (connect.Value, error) {
	v := connect.Value{Valid: true}
	ok := true
	switch c.schema.Name {
	case nameISOTimestamp:
		start := len(s.bytes)
		s.bytes = appendInstant(s.bytes, t, 0)
		return s.text(start), nil
	case nameTimestamp, connect.NameTimestamp:
		if v.Int, ok = t.millis(); !ok {
			return connect.Value{}, errLost
		}
	case nameNanoTimestamp:
		if v.Int, ok = t.nanoseconds(); !ok {
			return connect.Value{}, errNano
		}
	default:
		v.Int = t.micros()
	}
	return v, nil
}

func timestamptz(c *codec, s *Scratch, text []byte) (connect.Value, error) {
	if infinite(text) != 0 {
		return connect.Value{Valid: true, Bytes: text}, nil
	}
	t, ok := parseTimestamptz(text)
	if !ok {
		return connect.Value{}, errText
	}
	start := len(s.bytes)
	s.bytes = appendInstant(s.bytes, t, c.size.scale)
	return s.text(start), nil
}

func timetz(_ *codec, s *Scratch, text []byte) (connect.Value, error) {
	r := read(text)
	nanos := r.clock()
	offset, odd := r.offset()
	switch {
	case !r.end():
		return connect.Value{}, errText
	case odd:
		return connect.Value{}, errOffset
	}
	start := len(s.bytes)
	s.bytes = append(appendClock(s.bytes, dayTime(nanos-offset*1e9), 0), 'Z')
	return s.text(start), nil
}

// dayTime moves a time of another time zone back into the day.
func dayTime(nanos int64) int64 { return nanos - floor(nanos, nanosPerDay)*nanosPerDay }
