package column

import (
	"bytes"
	"math"
	"strconv"

	"github.com/walpost/walpost/internal/debezium/connect"
)

var (
	nan = math.NaN()
	inf = math.Inf(1)
)

// interval is what the JDBC driver has of one.
type interval struct {
	years, months, days, hours, minutes int64
	micros                              int64 // with the seconds
}

// parseInterval reads the style postgres as the driver does: words in pairs of
// number and unit, and a time. Whatever else is in the text, such as infinity or
// epoch, is nothing.
func parseInterval(text []byte) (i interval, ok bool) {
	var number []byte
	odd := true
	for word := range bytes.FieldsSeq(text) {
		word = bytes.TrimPrefix(word, []byte("+"))
		switch {
		case !odd:
			odd = true
			unit := i.unit(word)
			if unit == nil {
				continue
			}
			if number == nil {
				*unit = 0
			} else if *unit, ok = parseInt32(number); !ok {
				return i, false
			}
			continue
		case bytes.IndexByte(word, ':') < 0:
			number, odd = word, false
			continue
		}
		number, odd = nil, false
		if !i.clock(word) {
			return i, false
		}
	}
	return i, true
}

func parseInt32(text []byte) (int64, bool) {
	n, ok := parseInt(text)
	return n, ok && int64(int32(n)) == n
}

func (i *interval) unit(word []byte) *int64 {
	switch {
	case bytes.HasPrefix(word, []byte("year")):
		return &i.years
	case bytes.HasPrefix(word, []byte("mon")):
		return &i.months
	case bytes.HasPrefix(word, []byte("day")):
		return &i.days
	}
	return nil
}

// clock reads hours, minutes and seconds; a sign goes for all of them.
func (i *interval) clock(word []byte) bool {
	negative := word[0] == '-'
	if negative {
		word = word[1:]
	}
	hours, rest, _ := bytes.Cut(word, []byte(":"))
	minutes, seconds, more := bytes.Cut(rest, []byte(":"))
	var ok1, ok2 bool
	i.hours, ok1 = parseInt32(hours)
	i.minutes, ok2 = parseInt32(minutes)
	if !ok1 || !ok2 {
		return false
	}
	if more {
		f, ok := parseFloat(seconds, 64)
		if !ok || math.Abs(f) > math.MaxInt32 {
			return false
		}
		i.micros = int64(math.Floor(f*1e6 + 0.5)) // as Java's Math.round
	}
	if negative {
		i.hours, i.minutes, i.micros = -i.hours, -i.minutes, -i.micros
	}
	return true
}

// daysPerMonth is Debezium's average.
const daysPerMonth = 365.25 / 12

func intervalMicros(_ *codec, _ *Scratch, text []byte) (connect.Value, error) {
	i, ok := parseInterval(text)
	if !ok {
		return connect.Value{}, errText
	}
	return connect.Value{Valid: true, Int: i.duration()}, nil
}

// duration adds up as Java does, in doubles. The conversions keep the compiler
// from fusing multiplication and addition, which rounds differently.
func (i *interval) duration() int64 {
	months := float64(int32(i.years)*12 + int32(i.months))
	seconds := float64(i.micros/1_000_000) + float64(float64(i.micros%1_000_000)/1e6)
	days := float64(months*daysPerMonth) + float64(i.days)
	hours := float64(days*24) + float64(i.hours)
	minutes := float64(hours*60) + float64(i.minutes)
	total := float64(float64(float64(minutes*60)+seconds) * 1e6)
	switch {
	case total >= math.MaxInt64:
		return math.MaxInt64
	case total <= math.MinInt64:
		return math.MinInt64
	}
	return int64(total)
}

func intervalText(_ *codec, s *Scratch, text []byte) (connect.Value, error) {
	i, ok := parseInterval(text)
	if !ok {
		return connect.Value{}, errText
	}
	start := len(s.bytes)
	s.bytes = append(s.bytes, 'P')
	for _, part := range [...]struct {
		n      int64
		suffix string
	}{{i.years, "Y"}, {i.months, "M"}, {i.days, "DT"}, {i.hours, "H"}, {i.minutes, "M"}} {
		s.bytes = strconv.AppendInt(s.bytes, part.n, 10)
		s.bytes = append(s.bytes, part.suffix...)
	}
	micros := i.micros
	if micros < 0 {
		s.bytes, micros = append(s.bytes, '-'), -micros
	}
	s.bytes = strconv.AppendInt(s.bytes, micros/1_000_000, 10)
	if fraction := micros % 1_000_000; fraction != 0 {
		s.bytes = append(s.bytes, '.')
		s.bytes = appendPadded(s.bytes, fraction, 6)
		s.bytes = bytes.TrimRight(s.bytes, "0")
	}
	s.bytes = append(s.bytes, 'S')
	return s.text(start), nil
}
