package logging

import (
	"strings"
	"testing"
)

func TestScrub(t *testing.T) {
	t.Parallel()
	tests := map[string]string{
		"postgres://walpost:hunter2@db:5432/shop":                "postgres://walpost:********@db:5432/shop",
		"cannot parse `postgresql://u:p@hunter2@db/x`: no":       "cannot parse `postgresql://u:********@db/x`: no",
		"dial postgres://u:hunter2@a/x: refused (u@b)":           "dial postgres://u:********@a/x: refused (u@b)",
		"postgres://walpost@db/shop":                             "postgres://walpost@db/shop",
		"postgres://db/shop?password=hunter2&sslmode=require":    "postgres://db/shop?password=********&sslmode=require",
		"host=db password=hunter2 dbname=shop":                   "host=db password=******** dbname=shop",
		"host=db password='hun ter2' dbname=shop":                "host=db password=******** dbname=shop",
		`host=db password = 'it\'s hunter2' dbname=shop`:         "host=db password = ******** dbname=shop",
		"host=db password='hunter2":                              "host=db password=********",
		"sslpassword=hunter2 PASSWORD=hunter2":                   "sslpassword=******** PASSWORD=********",
		`{"user":"u","password":"hun\"ter2","port":1}`:           `{"user":"u","password":"********","port":1}`,
		`{"sasl.password" : "hunter2"}`:                          `{"sasl.password" : "********"}`,
		"sasl.jaas.config=org.x.Plain required password=\"a\";":  "sasl.jaas.config=********",
		"Authorization: Bearer eyJhbGciOi.hunter2":               "Authorization: Bearer ********",
		"client_secret=hunter2":                                  "client_secret=********",
		"password authentication failed for user \"walpost\"":    "password authentication failed for user \"walpost\"",
		"failed to connect to `user=u database=d`: dial tcp: no": "failed to connect to `user=u database=d`: dial tcp: no",
		"topic outbox.event.order: 3 records at 0/16B3748":       "topic outbox.event.order: 3 records at 0/16B3748",
		"the basic flow": "the basic flow",
		"":               "",
	}
	for text, want := range tests {
		got := Scrub(text)
		if got != want {
			t.Errorf("Scrub(%q):\n got %q\nwant %q", text, got, want)
		}
		if again := Scrub(got); again != got {
			t.Errorf("Scrub(%q) is not stable: %q", got, again)
		}
	}
}

func FuzzScrub(f *testing.F) {
	f.Add("hunter2")
	f.Add("p@ss:w/ord'")
	f.Fuzz(func(t *testing.T, password string) {
		if len(password) < 4 || strings.ContainsAny(password, " \t\n\r\v\f'\"`&*") || strings.ContainsFunc(password, func(r rune) bool { return r < ' ' || r > '~' }) {
			return // cannot stand unquoted in a connection string
		}
		for _, text := range []string{
			"postgres://walpost:" + password + "@db/shop",
			"host=db password=" + password + " dbname=shop",
			"host=db password='" + strings.ReplaceAll(password, `\`, `\\`) + "' dbname=shop",
		} {
			// What the rest of the text spells by itself is no leak.
			if got := Scrub(text); strings.Contains(got, password) && !strings.Contains(Scrub(strings.Replace(text, password, "", 1)), password) {
				t.Errorf("Scrub(%q): got %q", text, got)
			}
		}
	})
}
