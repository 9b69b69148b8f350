package testkit

import (
	"reflect"
	"testing"

	"github.com/jackc/pgx/v5"
)

func TestWithDatabase(t *testing.T) {
	t.Parallel()
	for _, dsn := range []string{
		"postgres://me:old@127.0.0.1:7777/postgres?sslmode=disable&application_name=x",
		"postgresql://127.0.0.1:7777/?user=me&password=old&sslmode=disable&application_name=x",
		"host=127.0.0.1 port=7777 user=me password=old dbname=postgres sslmode=disable application_name=x",
	} {
		config, err := pgx.ParseConfig(withDatabase(dsn, "a b", "o'k", `p@ss'\`))
		if err != nil {
			t.Errorf("%s: %v", dsn, err)
			continue
		}
		got := []any{config.Host, config.Port, config.Database, config.User, config.Password, config.RuntimeParams["application_name"]}
		want := []any{"127.0.0.1", uint16(7777), "a b", "o'k", `p@ss'\`, "x"}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %q, want %q", dsn, got, want)
		}
	}
}

func TestParseMajors(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]int{
		"":       {14, 15, 18},
		"all":    {14, 15, 16, 17, 18},
		"16, 18": {16, 18},
		"13":     nil,
		"x":      nil,
	} {
		got, err := parseMajors(text)
		if !reflect.DeepEqual(got, want) || (err == nil) != (want != nil) {
			t.Errorf("parseMajors(%q) = %v, %v, want %v", text, got, err, want)
		}
	}
}
