package outbox

import (
	"archive/zip"
	"bytes"
	"embed"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

//go:embed sql/*.sql
var texts embed.FS

// Part is something that the package needs in a database. Parts can be added.
type Part uint

// The parts.
const (
	// Guard is the schema walpost and the function that keeps an outbox
	// append-only. Every database with an outbox needs it once.
	Guard Part = 1 << iota
	// Table is the outbox itself, with its triggers.
	Table
	// Counter is what NextVersions counts in.
	Counter
	// Consumption is what a Consumer keeps in its own database.
	Consumption

	// Writing is everything for a service that writes events.
	Writing = Guard | Table | Counter
)

// SchemaOptions say what tables there shall be. The zero value is a database of
// a service that writes and consumes.
type SchemaOptions struct {
	// Parts; 0 means Writing and Consumption.
	Parts Part
	// Table is the outbox, as name or schema.name; outbox_events.
	Table string
	// Payload is the type of its payload column: jsonb, json, text or bytea.
	// json keeps the bytes as they were written; jsonb keeps the value.
	Payload string
	// UniqueVersions lets the server refuse a version that an aggregate has
	// already. Write then gives ErrVersionTaken.
	UniqueVersions bool
	// Schema of the consumer's tables; the first one of the search path if empty.
	Schema string
}

// payloads are the types that the payload column can have.
var payloads = []string{"jsonb", "json", "text", "bytea"}

// object is what a migration makes: one entry of the version table.
type object struct {
	part  Part
	title string          // of its file
	table pgx.Identifier  // by which it is known to be there
	steps [][]string      // the statements from each version to the next
	needs map[string]bool // columns without which a table is not ours
}

func (o SchemaOptions) objects() ([]object, error) {
	if o.Parts == 0 {
		o.Parts = Writing | Consumption
	}
	if o.Table == "" {
		o.Table = "outbox_events"
	}
	if o.Payload == "" {
		o.Payload = payloads[0]
	}
	if !slices.Contains(payloads, o.Payload) {
		return nil, &Error{Text: fmt.Sprintf("%q cannot be the type of the payload", o.Payload), Way: "choose one of " + strings.Join(payloads, ", ")}
	}
	table, err := parseTable(o.Table)
	if err != nil {
		return nil, err
	}
	schema, err := prefix(o.Schema)
	if err != nil {
		return nil, err
	}
	processed := pgx.Identifier{"processed_events"}
	if o.Schema != "" {
		processed = pgx.Identifier{o.Schema, "processed_events"}
	}
	name := table[len(table)-1]
	fill := strings.NewReplacer("{table}", table.Sanitize(), "{payload}", o.Payload, "{schema}", schema,
		// The name tells Write which constraint it was, and fits whatever the
		// table is called.
		"{versions}", pgx.Identifier{name[:min(len(name), 54)] + "_versions"}.Sanitize())
	outbox := read("table", fill)
	if o.UniqueVersions {
		outbox = append(outbox, read("unique_versions", fill)...)
	}
	all := []object{
		{part: Guard, title: "guard", table: pgx.Identifier{"walpost", "append_only"}, steps: [][]string{read("guard", fill)}},
		{part: Table, title: "outbox", table: table, steps: [][]string{outbox}, needs: set(columns)},
		{part: Counter, title: "counter", table: pgx.Identifier{"walpost", "aggregate_versions"}, steps: [][]string{read("counter", fill)}},
		{part: Consumption, title: "consumer", table: processed, steps: [][]string{read("consumer", fill)}},
	}
	return slices.DeleteFunc(all, func(b object) bool { return o.Parts&b.part == 0 }), nil
}

func set(names []string) map[string]bool {
	m := make(map[string]bool, len(names))
	for _, n := range names {
		m[n] = true
	}
	return m
}

// read gives the statements of a file: each ends with a semicolon and a blank
// line.
func read(name string, fill *strings.Replacer) []string {
	text, err := texts.ReadFile("sql/" + name + ".sql")
	if err != nil {
		panic("outbox: " + err.Error()) // not built in
	}
	list := strings.Split(strings.TrimSpace(string(text)), ";\n\n")
	for i := range list {
		list[i] = fill.Replace(strings.TrimSuffix(list[i], ";"))
	}
	return list
}

// Statements gives the statements that make everything, in order, without
// semicolons. What is there already is not looked for.
func Statements(o SchemaOptions) ([]string, error) {
	objects, err := o.objects()
	if err != nil {
		return nil, err
	}
	var list []string
	for _, b := range objects {
		for _, step := range b.steps {
			list = append(list, step...)
		}
	}
	return list, nil
}

// SQL is Statements as one text, for somebody with more rights or another tool.
func SQL(o SchemaOptions) (string, error) {
	list, err := Statements(o)
	if err != nil {
		return "", err
	}
	return text(list), nil
}

func text(list []string) string {
	var b strings.Builder
	for i, s := range list {
		if i > 0 && strings.HasPrefix(s, "create table") {
			b.WriteByte('\n')
		}
		b.WriteString(s + ";\n")
	}
	return b.String()
}

// FS holds the same text as numbered files, such as 00001_walpost_guard.up.sql,
// as goose, golang-migrate and Atlas take them. There are no files that go back:
// dropping an outbox loses events. Choose between a tool's bookkeeping and
// Migrate's; Migrate takes over what it finds.
func FS(o SchemaOptions) (fs.FS, error) {
	objects, err := o.objects()
	if err != nil {
		return nil, err
	}
	// A zip archive in memory is a complete file system.
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	number := 0
	for _, object := range objects {
		for _, step := range object.steps {
			number++
			f, err := w.Create(fmt.Sprintf("%05d_walpost_%s.up.sql", number, object.title))
			if err != nil {
				return nil, err
			}
			// The comments are goose's; a function body has semicolons of its own.
			if _, err := fmt.Fprintf(f, "-- +goose Up\n-- +goose StatementBegin\n%s-- +goose StatementEnd\n", text(step)); err != nil {
				return nil, err
			}
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return zip.NewReader(bytes.NewReader(b.Bytes()), int64(b.Len()))
}
