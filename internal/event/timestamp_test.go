package event

import (
	"testing"
	"time"
)

func TestRecordTime(t *testing.T) {
	t.Parallel()
	const layout = "2006-01-02T15:04:05.999999999Z07:00"
	tests := []struct {
		typ  uint32
		text string
		want string // empty: refused
	}{
		{oidTimestamptz, "2026-12-02 05:14:00.123456+00", "2026-12-02T05:14:00.123456Z"},
		{oidTimestamptz, "2026-12-02 05:14:00.1+00", "2026-12-02T05:14:00.1Z"},
		{oidTimestamptz, "2026-12-02 05:14:00+00:00", "2026-12-02T05:14:00Z"},
		{oidTimestamptz, "2026-12-02 05:14:00+05:30", "2026-12-01T23:44:00Z"},
		{oidTimestamptz, "2026-12-02 05:14:00-08", "2026-12-02T13:14:00Z"},
		{oidTimestamptz, "2026-12-02 05:14:00-00:00:28", "2026-12-02T05:14:28Z"},
		{oidTimestamptz, "2024-02-29 23:59:59.999999+00", "2024-02-29T23:59:59.999999Z"},
		{oidTimestamptz, "1970-01-01 00:00:00+00", "1970-01-01T00:00:00Z"},
		{oidTimestamptz, "1970-01-01 00:00:00+00:00:01", ""},
		{oidTimestamptz, "1969-12-31 23:59:59.999+00", ""},
		{oidTimestamptz, "294276-12-31 23:59:59.999999+00", "294276-12-31T23:59:59.999999Z"},
		{oidTimestamptz, "0044-03-15 12:00:00+00 BC", ""},
		{oidTimestamptz, "infinity", ""},
		{oidTimestamptz, "-infinity", ""},
		{oidTimestamptz, "", ""},
		{oidTimestamptz, "2026-12-02 05:14:00+", ""},
		{oidTimestamptz, "2026-12-02 05:14:00+0", ""},
		{oidTimestamptz, "2026-12-02 05:14:00+00:", ""},
		{oidTimestamptz, "2026-12-02 05:14:00+24", ""},
		{oidTimestamptz, "2026-12-02 05:14:00.+00", ""},
		{oidTimestamptz, "2026-12-02 05:14:00.1234567890", ""},
		{oidTimestamptz, "2026-12-02 05:14", ""},
		{oidTimestamptz, "2026-12-02 24:00:00", ""},
		{oidTimestamptz, "2026-12-02 05:60:00", ""},
		{oidTimestamptz, "2026-12-02 05:14:60", ""},
		{oidTimestamptz, "12/02/2026 05:14:00", ""},
		{oidTimestamptz, "20261202", ""},
		{oidTimestamp, "2026-12-02 05:14:00.123", "2026-12-02T05:14:00.123Z"},
		{oidTimestamp, "2026-12-02T05:14:00Z", "2026-12-02T05:14:00Z"},
		{oidDate, "2026-12-02", "2026-12-02T00:00:00Z"},
		{oidDate, "10000-01-01", "10000-01-01T00:00:00Z"},
		{oidDate, "5874897-12-31", ""},
		{oidDate, "2026-02-29", ""},
		{oidDate, "2026-13-01", ""},
		{oidDate, "2026-00-01", ""},
		{oidDate, "2026-01-00", ""},
		{oidDate, "2026-01-01x", ""},
		{oidInt8, "0", "1970-01-01T00:00:00Z"},
		{oidInt8, "1764652440123", "2025-12-02T05:14:00.123Z"},
		{oidInt8, "9223372036854775807", "292278994-08-17T07:12:55.807Z"},
		{oidInt8, "9223372036854775808", ""},
		{oidInt8, "99999999999999999999", ""},
		{oidInt8, "-1", ""},
		{oidInt8, "", ""},
		{oidInt8, "1.5", ""},
	}
	for _, tt := range tests {
		got, ok := recordTime(tt.typ, []byte(tt.text))
		if ok != (tt.want != "") || ok && got.Format(layout) != tt.want {
			t.Errorf("recordTime(%d, %q) = %s, %v; want %q", tt.typ, tt.text, got.Format(layout), ok, tt.want)
		}
	}
}

// FuzzParseTimestamp compares with the standard library wherever that knows the
// form too, and takes what is parsed through a round trip.
func FuzzParseTimestamp(f *testing.F) {
	for _, s := range []string{"2026-12-02 05:14:00.123456+00", "2026-12-02 05:14:00+05:30", "2026-12-02 05:14:00-00:00:28", "2026-12-02",
		"10000-01-01 00:00:00", "infinity", "0044-03-15 12:00:00+00 BC", "2024-02-29T23:59:59.999999999Z", "0000-00-00 00:00:00"} {
		f.Add(s)
	}
	layouts := []string{"2006-01-02", "2006-01-02 15:04:05.999999999", "2006-01-02 15:04:05.999999999-07", "2006-01-02 15:04:05.999999999-07:00",
		"2006-01-02 15:04:05.999999999-07:00:00"}
	f.Fuzz(func(t *testing.T, s string) {
		got, ok := parseTimestamp([]byte(s))
		if !ok {
			return
		}
		text := got.Format("2006-01-02 15:04:05.999999999-07")
		if again, ok := parseTimestamp([]byte(text)); got.Year() >= 0 && (!ok || !again.Equal(got)) {
			t.Errorf("%q gives %s, which gives %s, %v", s, text, again, ok)
		}
		for _, l := range layouts {
			if want, err := time.Parse(l, s); err == nil && !want.Equal(got) {
				t.Errorf("%q gives %s, but time.Parse %s", s, got, want)
			}
		}
	})
}

func TestParseTimestampDoesNotAllocate(t *testing.T) {
	text := []byte("2026-12-02 05:14:00.123456+05:30")
	if got := testing.AllocsPerRun(100, func() { recordTime(oidTimestamptz, text) }); got != 0 {
		t.Errorf("%v allocations, want 0", got)
	}
}
