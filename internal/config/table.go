package config

import (
	"strings"
)

// maxName is the longest identifier PostgreSQL keeps (NAMEDATALEN - 1).
const maxName = 63

// defaultSchema is that of a table named without one.
const defaultSchema = "public"

// Table is one outbox table. The names are those of the catalogue: upper case
// stays upper case.
type Table struct {
	Schema  string   `json:"schema"`
	Name    string   `json:"name"`
	Columns Columns  `json:"columns,omitzero"`
	Headers []Header `json:"headers,omitempty"`
}

// Columns names the columns with a meaning. An empty name means that the
// column is recognised by its usual names.
type Columns struct {
	ID            string `json:"id,omitempty"`
	AggregateType string `json:"aggregate_type,omitempty"`
	AggregateID   string `json:"aggregate_id,omitempty"`
	Type          string `json:"type,omitempty"`
	Payload       string `json:"payload,omitempty"`
	Timestamp     string `json:"timestamp,omitempty"`
	Partition     string `json:"partition,omitempty"`
}

// Header is a column that becomes a record header.
type Header struct {
	Column   string `json:"column"`
	Name     string `json:"name"`
	Required bool   `json:"required,omitempty"`
}

// String gives schema.table, quoted where PostgreSQL would quote.
func (t Table) String() string { return quoteName(t.Schema) + "." + quoteName(t.Name) }

// describe adds the mapping, for people.
func (t Table) describe() string {
	var parts []string
	for _, c := range t.Columns.fields() {
		if *c.at != "" {
			parts = append(parts, c.name+"="+*c.at)
		}
	}
	for _, h := range t.Headers {
		parts = append(parts, "header "+h.Name+"="+h.Column)
	}
	if len(parts) == 0 {
		return t.String()
	}
	return t.String() + " {" + strings.Join(parts, ", ") + "}"
}

type columnField struct {
	name string
	at   *string
}

// fields lists the columns by the names they have in the file.
func (c *Columns) fields() []columnField {
	return []columnField{
		{"id", &c.ID},
		{"aggregate_type", &c.AggregateType},
		{"aggregate_id", &c.AggregateID},
		{"type", &c.Type},
		{"payload", &c.Payload},
		{"timestamp", &c.Timestamp},
		{"partition", &c.Partition},
	}
}

func quoteName(s string) string {
	plain := s != "" && strings.IndexFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '_'
	}) < 0 && (s[0] < '0' || s[0] > '9')
	if plain {
		return s
	}
	return `"` + strings.ReplaceAll(s, `"`, `""`) + `"`
}

const tableWay = `write schema.table; a name with a dot or a comma in it goes in double quotes: sales."out.box"`

// parseTable reads schema.table or table, each part plain or in double quotes.
func parseTable(text string) (Table, *fault) {
	bad := &fault{quote(text) + " is not a table name", tableWay}
	var parts []string
	rest := strings.TrimSpace(text)
	for {
		part, after, ok := cutName(rest)
		if !ok || checkName(part) != nil {
			return Table{}, bad
		}
		parts = append(parts, part)
		if after == "" {
			break
		}
		if after[0] != '.' {
			return Table{}, bad
		}
		rest = after[1:]
	}
	switch len(parts) {
	case 1:
		return Table{Schema: defaultSchema, Name: parts[0]}, nil
	case 2:
		return Table{Schema: parts[0], Name: parts[1]}, nil
	default:
		return Table{}, bad
	}
}

// cutName takes one identifier off the front of s.
func cutName(s string) (name, rest string, ok bool) {
	if !strings.HasPrefix(s, `"`) {
		i := strings.IndexAny(s, ".")
		if i < 0 {
			i = len(s)
		}
		return s[:i], s[i:], !strings.ContainsAny(s[:i], "\" \t")
	}
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		if s[i] != '"' {
			b.WriteByte(s[i])
			continue
		}
		if i+1 < len(s) && s[i+1] == '"' {
			b.WriteByte('"')
			i++
			continue
		}
		return b.String(), s[i+1:], true
	}
	return "", "", false
}

// checkName refuses what can be no identifier.
func checkName(s string) *fault {
	switch {
	case s == "":
		return &fault{"must not be empty", "give it a name"}
	case len(s) > maxName:
		return &fault{quote(s) + " is longer than PostgreSQL's 63 bytes", "use the name as PostgreSQL shows it"}
	case strings.IndexFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f }) >= 0:
		return &fault{quote(s) + " has a control character in it", "use the name as PostgreSQL shows it"}
	}
	return nil
}
