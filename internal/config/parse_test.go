package config

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"
)

func TestSize(t *testing.T) {
	t.Parallel()
	tests := []struct {
		text string
		want Size
		back string
	}{
		{"0", 0, "0"},
		{"1", 1, "1"},
		{"1500B", 1500, "1500"},
		{"16MB", 16e6, "16MB"},
		{"16 mb", 16e6, "16MB"},
		{"32MiB", 32 << 20, "32MiB"},
		{"33554432", 32 << 20, "32MiB"},
		{"64KiB", 64 << 10, "64KiB"},
		{"10kB", 10000, "10kB"},
		{"1024MiB", 1 << 30, "1GiB"},
	}
	for _, test := range tests {
		got, bad := parseSize(test.text)
		if bad != nil || got != test.want {
			t.Errorf("parseSize(%q): got %d, %v, want %d", test.text, int64(got), bad, int64(test.want))
		}
		if got.String() != test.back {
			t.Errorf("%q: printed as %s, want %s", test.text, got, test.back)
		}
	}
	for _, text := range []string{"", "MB", "-1", "1.5MB", "1MBB", "9223372036854775807GiB", "99999999999999999999", "1 2"} {
		if got, bad := parseSize(text); bad == nil {
			t.Errorf("parseSize(%q): got %d, want a fault", text, int64(got))
		}
	}
}

func TestTableNames(t *testing.T) {
	t.Parallel()
	tests := map[string]string{
		"outbox":                 "public.outbox",
		"sales.outbox":           "sales.outbox",
		" sales.outbox ":         "sales.outbox",
		"Sales.Outbox":           `"Sales"."Outbox"`,
		`"Sales"."Out.box"`:      `"Sales"."Out.box"`,
		`sales."a ""b"" c"`:      `sales."a ""b"" c"`,
		`"one,two"`:              `public."one,two"`,
		"sales.1st":              `sales."1st"`,
		"Größe":                  `public."Größe"`,
		"":                       "",
		".":                      "",
		"a.":                     "",
		".a":                     "",
		"a.b.c":                  "",
		"a b":                    "",
		`"a`:                     "",
		`"a"b`:                   "",
		`a"b`:                    "",
		`""`:                     "",
		"a;\x00b":                "",
		string(make([]byte, 64)): "",
	}
	for text, want := range tests {
		got := ""
		if table, bad := parseTable(text); bad == nil {
			got = table.String()
		}
		if got != want {
			t.Errorf("parseTable(%q): got %q, want %q", text, got, want)
		}
	}
}

func TestFormatDuration(t *testing.T) {
	t.Parallel()
	tests := map[time.Duration]string{
		0: "0s", 10 * time.Second: "10s", 100 * time.Millisecond: "100ms", time.Minute: "1m",
		90 * time.Second: "1m30s", time.Hour: "1h", time.Hour + time.Second: "1h0m1s", 90 * time.Minute: "1h30m",
		10 * time.Minute: "10m", 20 * time.Hour: "20h",
	}
	for d, want := range tests {
		got := formatDuration(d)
		if got != want {
			t.Errorf("formatDuration(%v): got %q, want %q", d, got, want)
		}
		if back, err := time.ParseDuration(got); err != nil || back != d {
			t.Errorf("%q reads back as %v, %v, want %v", got, back, err, d)
		}
	}
}

func TestClosest(t *testing.T) {
	t.Parallel()
	names := []string{"brokers", "compression", "topic", "dsn"}
	tests := map[string]string{
		"broker": "brokers", "brokres": "brokers", "kompresion": "compression", "Topic": "topic", "dns": "dsn",
		"zookeeper": "", "x": "", "": "",
	}
	for text, want := range tests {
		if got, _ := Closest(text, names); got != want {
			t.Errorf("Closest(%q): got %q, want %q", text, got, want)
		}
	}
}

// Whatever is wrong with a connection string, no part of it is printed.
func TestDSNFaultsNeverQuote(t *testing.T) {
	t.Parallel()
	for _, dsn := range []string{
		"postgres://walpost:hunter2@db:hunter2/shop",
		"postgres://walpost:hunter2/x@db/shop",
		"postgres://walpost:hunter2@[::1/shop",
		"postgres://walpost:hun%zzter2@db/shop",
		"postgres://db/shop?password=hunter2&sslmode=hunter2",
		"postgres://db/shop?sslrootcert=hunter2",
		"postgres://db/shop?hunter2",
		"postgres://walpost:p@hunter2@db/shop",
		"host=db password='hunter2",
		"host=db hunter2",
		"host=db sslcertmode=hunter2",
		"host=db channel_binding=hunter2",
		"host=db target_session_attrs=hunter2",
		"hunter2",
		"hunter2://db",
		"jdbc:postgresql://db/shop?password=hunter2",
	} {
		_, err := Load(Sources{
			Environ:  []string{"WALPOST_DSN=" + dsn},
			ReadFile: func(string) ([]byte, error) { return nil, os.ErrNotExist },
		})
		list, ok := errors.AsType[Errors](err)
		if !ok || len(list) != 1 {
			t.Errorf("%s: got %v, want one fault", dsn, err)
			continue
		}
		for _, line := range []string{list[0].Text, list[0].Way} {
			if len(line) == 0 || strings.Contains(line, "hunter2") {
				t.Errorf("%s: got line %q", dsn, line)
			}
		}
	}
}
