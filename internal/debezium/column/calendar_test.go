package column

import "testing"

// Days that Java 17 counts to a date: in its proleptic calendar (LocalDate) and in
// its default one (GregorianCalendar), and the LocalDate that a java.sql.Date of
// the latter gives.
func TestCalendars(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		year, month, day int64
		proleptic        int64
		hybrid           int64
		back             string // of hybrid; none if it is no date
	}{
		{2019, 3, 24, 17979, 17979, "2019-03-24"},
		{1970, 1, 1, 0, 0, "1970-01-01"},
		{1969, 12, 31, -1, -1, "1969-12-31"},
		{2000, 2, 29, 11016, 11016, "2000-02-29"},
		{1582, 10, 15, -141427, -141427, "1582-10-15"},
		{1582, 10, 14, -141428, -141418, "1582-10-24"},
		{1582, 10, 10, -141432, -141422, "1582-10-20"},
		{1582, 10, 5, -141437, -141427, "1582-10-15"},
		{1582, 10, 4, -141438, -141428, "1582-10-04"},
		{1000, 1, 1, -354285, -354280, "1000-01-01"},
		{44, 3, 15, -703383, -703385, "0044-03-15"},
		{-43, 3, 15, -735160, -735162, "0044-03-15"},
		{4, 2, 29, -718008, -718010, "0004-02-29"},
		{0, 2, 29, -719469, -719471, ""},
		{-4712, 1, 1, -2440550, -2440588, "4713-01-01"},
		{292278994, 8, 16, 106751991166, 106751991166, "+292278994-08-16"},
	} {
		if got := daysOf(test.year, test.month, test.day); got != test.proleptic {
			t.Errorf("%d-%d-%d: day %d, want %d", test.year, test.month, test.day, got, test.proleptic)
		}
		if y, m, d := dateOf(test.proleptic); y != test.year || m != test.month || d != test.day {
			t.Errorf("day %d: %d-%d-%d, want %d-%d-%d", test.proleptic, y, m, d, test.year, test.month, test.day)
		}
		if got := hybridDays(test.year, test.month, test.day); got != test.hybrid {
			t.Errorf("%d-%d-%d: hybrid day %d, want %d", test.year, test.month, test.day, got, test.hybrid)
		}
		days, ok := hybridDate(test.year, test.month, test.day)
		if got := string(appendDate(nil, days)); ok != (test.back != "") || ok && got != test.back {
			t.Errorf("%d-%d-%d: comes back as %s, %v; want %q", test.year, test.month, test.day, got, ok, test.back)
		}
	}
}

// The order of a Java HashMap<String, String>, printed by Java 17.
func TestJavaOrder(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]uint32{"": 0, "a": 97, "zebra": 115776262, "Aa": 2112, "BB": 2112, "é": 233, "😀": 1772899} {
		if got := stringHash([]byte(text)); got != want {
			t.Errorf("hash of %q: %d, want %d", text, got, want)
		}
	}
	for n, want := range map[int]uint32{0: 16, 12: 16, 13: 32, 24: 32, 25: 64, 1000: 2048} {
		if got := capacity(hashMapBuckets, n); got != want {
			t.Errorf("%d entries: %d buckets, want %d", n, got, want)
		}
	}
}
