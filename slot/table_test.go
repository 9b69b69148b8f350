package slot

import "testing"

func TestParseTable(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Table{
		"outbox":                   {"public", "outbox"},
		"sales.outbox":             {"sales", "outbox"},
		"Sales.OutBox":             {"Sales", "OutBox"},
		`"My-App"."Out.Box"`:       {"My-App", "Out.Box"},
		`"a""b".c`:                 {`a"b`, "c"},
		" sales.outbox ":           {"sales", "outbox"},
		`sales."out box"`:          {"sales", "out box"},
		"größe.überblick":          {"größe", "überblick"},
		`"1x"."2024_events"`:       {"1x", "2024_events"},
		"":                         {},
		"a.b.c":                    {},
		".b":                       {},
		"a.":                       {},
		`"a`:                       {},
		`"a"b`:                     {},
		`a"b"`:                     {},
		"a b":                      {},
		"a\x00b":                   {},
		"a; drop table users; --.": {},
		"a123456789012345678901234567890123456789012345678901234567890123": {},
	} {
		got, err := ParseTable(text)
		if (err != nil) != (want == Table{}) || got != want {
			t.Errorf("%q: got %+v, %v", text, got, err)
			continue
		}
		if err != nil {
			continue
		}
		if again, err := ParseTable(got.String()); err != nil || again != got {
			t.Errorf("%s does not read back: %+v, %v", got, again, err)
		}
	}
}

func FuzzParseTable(f *testing.F) {
	f.Add(`"a""b".c`)
	f.Fuzz(func(t *testing.T, text string) {
		got, err := ParseTable(text)
		if err != nil {
			return
		}
		if again, err := ParseTable(got.String()); err != nil || again != got {
			t.Errorf("%q gives %+v, which reads back as %+v, %v", text, got, again, err)
		}
	})
}
