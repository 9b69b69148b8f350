package column

import (
	"strings"
)

type decimalMode uint8

const (
	decimalPrecise decimalMode = iota
	decimalDouble
	decimalString
)

type timeMode uint8

const (
	timeAdaptive timeMode = iota
	timeAdaptiveMicros
	timeISO
	timeConnect
	timeMicros
	timeNanos
)

type binaryMode uint8

const (
	binaryBytes binaryMode = iota
	binaryBase64
	binaryBase64URL
	binaryHex
)

type failureMode uint8

const (
	failureWarn failureMode = iota
	failureFail
	failureSkip
)

// modes are Modes as numbers.
type modes struct {
	decimal     decimalMode
	time        timeMode
	binary      binaryMode
	failure     failureMode
	hstoreMap   bool
	intervalISO bool
	unknown     bool
	money       int
}

// Check says whether Debezium knows the modes.
func (m Modes) Check() error {
	_, err := m.parse()
	return err
}

func (m Modes) parse() (modes, error) {
	p := modes{unknown: m.IncludeUnknown, money: m.MoneyDigits}
	var hstore, interval uint8
	for _, mode := range []struct {
		name, value string
		to          *uint8
		known       []string // the first is the default
	}{
		{"decimal.handling.mode", m.Decimal, (*uint8)(&p.decimal), []string{"precise", "double", "string"}},
		{"time.precision.mode", m.Time, (*uint8)(&p.time), []string{"adaptive", "adaptive_time_microseconds", "isostring", "connect", "microseconds", "nanoseconds"}},
		{"binary.handling.mode", m.Binary, (*uint8)(&p.binary), []string{"bytes", "base64", "base64-url-safe", "hex"}},
		{"event.converting.failure.handling.mode", m.Failure, (*uint8)(&p.failure), []string{"warn", "fail", "skip"}},
		{"hstore.handling.mode", m.HStore, &hstore, []string{"json", "map"}},
		{"interval.handling.mode", m.Interval, &interval, []string{"numeric", "string"}},
	} {
		if mode.value == "" {
			continue
		}
		found := false
		for i, name := range mode.known {
			if strings.EqualFold(strings.TrimSpace(mode.value), name) {
				*mode.to, found = uint8(i), true
			}
		}
		if !found {
			return p, &ModeError{Name: mode.name, Value: mode.value, hint: "one of " + strings.Join(mode.known, ", ")}
		}
	}
	p.hstoreMap, p.intervalISO = hstore == 1, interval == 1
	return p, nil
}
