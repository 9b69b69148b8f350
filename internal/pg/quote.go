package pg

import "strings"

// QuoteIdent quotes an identifier, as pg_catalog.quote_ident would if every
// name needed it.
func QuoteIdent(name string) string {
	return `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
}

// QuoteQualified quotes schema.name.
func QuoteQualified(schema, name string) string {
	return QuoteIdent(schema) + "." + QuoteIdent(name)
}

// QuoteLiteral quotes a string constant. A backslash makes it an E” constant,
// which means the same whatever standard_conforming_strings says.
func QuoteLiteral(text string) string {
	quoted := `'` + strings.ReplaceAll(text, `'`, `''`) + `'`
	if strings.Contains(quoted, `\`) {
		return `E` + strings.ReplaceAll(quoted, `\`, `\\`)
	}
	return quoted
}
