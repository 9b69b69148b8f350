package column

import "bytes"

const (
	secondsPerDay = 24 * 60 * 60
	nanosPerDay   = secondsPerDay * 1_000_000_000
)

// instant is a point of time: seconds since 1970, and nanoseconds of that second.
type instant struct {
	seconds int64
	nanos   int32
}

// reader reads the dates and times that PostgreSQL prints.
type reader struct {
	text []byte
	ok   bool
}

func read(text []byte) reader { return reader{text, true} }

// take reads the character c.
func (r *reader) take(c byte) bool {
	if len(r.text) == 0 || r.text[0] != c {
		return false
	}
	r.text = r.text[1:]
	return true
}

func (r *reader) need(c byte) { r.ok = r.take(c) && r.ok }

// number reads from low to high digits.
func (r *reader) number(low, high int) int64 {
	var n int64
	i := 0
	for ; i < len(r.text) && i < high && '0' <= r.text[i] && r.text[i] <= '9'; i++ {
		n = n*10 + int64(r.text[i]-'0')
	}
	r.ok = r.ok && i >= low
	r.text = r.text[i:]
	return n
}

// date reads a date without its era.
func (r *reader) date() (year, month, day int64) {
	year = r.number(4, 10)
	r.need('-')
	month = r.number(2, 2)
	r.need('-')
	day = r.number(2, 2)
	r.ok = r.ok && 1 <= month && month <= 12 && 1 <= day && day <= 31
	return year, month, day
}

// clock reads a time of day in nanoseconds; 24:00:00 is the end of the day.
func (r *reader) clock() int64 {
	hour := r.number(2, 2)
	r.need(':')
	minute := r.number(2, 2)
	r.need(':')
	second := r.number(2, 2)
	nanos := (hour*60+minute)*60*1e9 + second*1e9
	if r.take('.') {
		n := len(r.text)
		fraction := r.number(1, 9)
		for i := n - len(r.text); i < 9; i++ {
			fraction *= 10
		}
		nanos += fraction
	}
	r.ok = r.ok && minute < 60 && second < 60 && nanos <= nanosPerDay
	return nanos
}

// offset reads a time zone in seconds; odd says that it has seconds of its own.
func (r *reader) offset() (seconds int64, odd bool) {
	negative := r.take('-')
	if !negative {
		r.need('+')
	}
	seconds = r.number(2, 2) * 3600
	if r.take(':') {
		seconds += r.number(2, 2) * 60
		if r.take(':') {
			seconds, odd = seconds+r.number(2, 2), true
		}
	}
	if negative {
		seconds = -seconds
	}
	return seconds, odd
}

// year reads the era, which comes last, and gives the year with 1 BC as 0.
func (r *reader) year(year int64) int64 {
	if bytes.Equal(r.text, []byte(" BC")) {
		r.text = nil
		return 1 - year
	}
	return year
}

func (r *reader) end() bool { return r.ok && len(r.text) == 0 }

// parseDate gives days since 1970.
func parseDate(text []byte) (int64, bool) {
	r := read(text)
	year, month, day := r.date()
	year = r.year(year)
	return daysOf(year, month, day), r.end()
}

// parseTimestamp reads a timestamp without a time zone as if it were UTC.
func parseTimestamp(text []byte) (instant, bool) {
	r := read(text)
	year, month, day := r.date()
	r.need(' ')
	nanos := r.clock()
	year = r.year(year)
	return at(daysOf(year, month, day), nanos), r.end()
}

// parseTimestamptz reads a timestamp with any time zone.
func parseTimestamptz(text []byte) (instant, bool) {
	r := read(text)
	year, month, day := r.date()
	r.need(' ')
	nanos := r.clock()
	offset, _ := r.offset()
	year = r.year(year)
	t := at(daysOf(year, month, day), nanos)
	t.seconds -= offset
	return t, r.end()
}

func at(days, nanos int64) instant {
	return instant{days*secondsPerDay + nanos/1e9, int32(nanos % 1e9)}
}

// daysOf counts days since 1970 in the proleptic Gregorian calendar; the year
// begins in March, so that the leap day is its last.
func daysOf(year, month, day int64) int64 {
	if month <= 2 {
		year--
		month += 12
	}
	era := floor(year, 400)
	inEra := year - era*400
	return era*146097 + inEra*365 + inEra/4 - inEra/100 + (153*(month-3)+2)/5 + day - 1 - 719468
}

// dateOf is the reverse of daysOf.
func dateOf(days int64) (year, month, day int64) {
	days += 719468
	era := floor(days, 146097)
	inEra := days - era*146097
	inYear := (inEra - inEra/1460 + inEra/36524 - inEra/146096) / 365
	rest := inEra - (365*inYear + inYear/4 - inYear/100)
	month = (5*rest + 2) / 153
	day = rest - (153*month+2)/5 + 1
	year = inYear + era*400
	if month < 10 {
		return year, month + 3, day
	}
	return year + 1, month - 9, day
}

func floor(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// micros is the instant in microseconds by Java's arithmetic: the seconds
// saturate, and then the sum wraps around.
func (t instant) micros() int64 {
	const most = 1<<63 - 1
	n := int64(t.nanos) / 1000
	switch {
	case t.seconds > most/1_000_000:
		return wrap(most, n)
	case t.seconds < -most/1_000_000:
		return -most - 1 + n
	}
	return wrap(t.seconds*1_000_000, n)
}

// wrap adds as the machine does.
func wrap(a, b int64) int64 { return int64(uint64(a) + uint64(b)) }

// millis is the instant in milliseconds; ok is false if they do not fit.
func (t instant) millis() (n int64, ok bool) {
	const most = 1<<63 - 1
	if t.seconds > most/1000-1 || t.seconds < -most/1000+1 {
		return 0, false
	}
	return t.seconds*1000 + int64(t.nanos)/1_000_000, true
}

// nanoseconds is the instant in nanoseconds; ok is false if they do not fit.
func (t instant) nanoseconds() (n int64, ok bool) {
	day := floor(t.seconds, secondsPerDay)
	const most = (1<<63 - 1) / nanosPerDay
	if day > most || day < -most {
		return 0, false
	}
	n = day * nanosPerDay
	add := (t.seconds-day*secondsPerDay)*1e9 + int64(t.nanos)
	return wrap(n, add), n <= 0 || wrap(n, add) >= 0
}
