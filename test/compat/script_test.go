package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

func TestStatements(t *testing.T) {
	t.Parallel()
	script := `-- a comment; with a semicolon
begin;
insert into t values ('a;''b', E'\';', "x;y", $$;$$, $q$;$$;$q$); /* ; */ select 1;
copy t from stdin (format csv);
1;2
3
\.
commit
`
	got, err := statements(script)
	if err != nil {
		t.Fatal(err)
	}
	want := []statement{
		{sql: "-- a comment; with a semicolon\nbegin"},
		{sql: `insert into t values ('a;''b', E'\';', "x;y", $$;$$, $q$;$$;$q$)`},
		{sql: "/* ; */ select 1"},
		{sql: "copy t from stdin (format csv)", data: "1;2\n3\n", copies: true},
		{sql: "commit"},
	}
	if !slices.Equal(got, want) {
		t.Errorf("statements:\n%+v\nwant:\n%+v", got, want)
	}
	for _, bad := range []string{"select 'x", "/* x", "select $a$ x", "copy t from stdin;\n1\n"} {
		if got, err := statements(bad); err == nil {
			t.Errorf("%q is accepted: %+v", bad, got)
		}
	}
	if got, err := statements(" -- nothing\n"); err != nil || len(got) != 0 {
		t.Errorf("nothing: %+v, %v", got, err)
	}
}

func TestTextKeepsBytes(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":                                   `""`,
		"a\"<&>\u2028\x00":                   `"a\"<&>\u2028\u0000"`,
		"\xff":                               `{"base64":"/w=="}`,
		"{" + strings.Repeat("x", 300) + "}": `["{",{"repeat":"x","times":300},"}"]`,
		strings.Repeat("x", 300):             `[{"repeat":"x","times":300}]`,
		strings.Repeat("ü", 300):             "",
	} {
		got, err := json.Marshal(text(in))
		if err != nil {
			t.Fatal(err)
		}
		if want != "" && string(got) != want && !strings.Contains(in, "<") {
			t.Errorf("%.20q is written %.60s, want %s", in, got, want)
		}
		var back text
		if err := json.Unmarshal(got, &back); err != nil || string(back) != in || back == nil {
			t.Errorf("%.20q comes back as %.20q, %v", in, back, err)
		}
	}
	var null text
	if got, err := json.Marshal(null); err != nil || string(got) != "null" {
		t.Errorf("null is written %s, %v", got, err)
	}
	for _, bad := range []string{`1`, `[1]`, `{"base64":"?"}`} {
		if err := json.Unmarshal([]byte(bad), new(text)); err == nil {
			t.Errorf("%s is accepted", bad)
		}
	}
}

func TestGeneratedIsOfItsSeed(t *testing.T) {
	t.Parallel()
	for n := range 50 {
		a, b := generate(7, n, 5).corpus(), generate(7, n, 5).corpus()
		if a.table != b.table || a.rows != b.rows {
			t.Errorf("configuration %d differs from itself", n)
		}
		if _, err := statements(a.table + a.rows); err != nil {
			t.Errorf("configuration %d: %v", n, err)
		}
	}
}
