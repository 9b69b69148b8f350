package outbox

import (
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// parseTable reads name or schema.name. A part in double quotes may hold dots.
// Parts are taken as they are written: nothing is folded to lower case.
func parseTable(text string) (pgx.Identifier, error) {
	wrong := func(why string) error {
		return &Error{Text: fmt.Sprintf("table %q: %s", text, why), Way: `name it as table, as schema.table, or as "schema"."table"`}
	}
	var parts pgx.Identifier
	for rest := text; ; {
		var part string
		if strings.HasPrefix(rest, `"`) {
			end := 1
			for ; end < len(rest); end++ {
				if rest[end] != '"' {
					part += rest[end : end+1]
				} else if end+1 < len(rest) && rest[end+1] == '"' {
					part += `"`
					end++
				} else {
					break
				}
			}
			if end >= len(rest) {
				return nil, wrong("a quote is open")
			}
			rest = rest[end+1:]
		} else {
			end := strings.IndexAny(rest, `."`)
			if end < 0 {
				end = len(rest)
			}
			part, rest = rest[:end], rest[end:]
		}
		if part == "" || len(part) > 63 || strings.ContainsRune(part, 0) {
			return nil, wrong("each part has 1 to 63 bytes")
		}
		parts = append(parts, part)
		if rest == "" {
			break
		}
		if rest[0] != '.' || len(parts) == 2 {
			return nil, wrong("not a table's name")
		}
		rest = rest[1:]
	}
	return parts, nil
}

// prefix is what goes before the names of the tables in a schema. Without a
// schema the search path decides.
func prefix(schema string) (string, error) {
	if schema == "" {
		return "", nil
	}
	if len(schema) > 63 || strings.ContainsRune(schema, 0) {
		return "", &Error{Text: fmt.Sprintf("schema %q: a name has 1 to 63 bytes", schema), Way: "name a schema that exists"}
	}
	return pgx.Identifier{schema}.Sanitize() + ".", nil
}
