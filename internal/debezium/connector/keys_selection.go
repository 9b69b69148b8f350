package connector

import (
	"regexp"
	"slices"
	"strings"

	"github.com/walpost/walpost/internal/debezium/javaregex"
)

// selectionRules say what is captured.
func selectionRules() []rule {
	return []rule{
		{key: "table.include.list", show: true, decide: decideTables},
		{key: "table.exclude.list", decide: patternList("table.include.list", func(r *reading, v []string) { r.spec.TableExclude = v })},
		{key: "schema.include.list", decide: patternList("schema.exclude.list", func(r *reading, v []string) { r.spec.SchemaInclude = v })},
		{key: "schema.exclude.list", decide: patternList("schema.include.list", func(r *reading, v []string) { r.spec.SchemaExclude = v })},
		{key: "column.include.list", decide: func(r *reading, s *setting) verdict { return r.decideColumns(s, true) }},
		{key: "column.exclude.list", decide: func(r *reading, s *setting) verdict { return r.decideColumns(s, false) }},
		{key: "column.mask.*", decide: refuse("it alters the row before the router sees it", "remove it, or let the application write what consumers may see")},
		{key: "column.truncate.*", decide: refuse("it alters the row before the router sees it", "remove it, or let the application write what consumers may see")},
		{key: "message.key.columns", decide: ignore("it makes the key of the change event, which the router replaces")},
	}
}

// patternList takes a list of regular expressions that excludes its twin.
func patternList(twin string, put func(r *reading, v []string)) decide {
	return func(r *reading, s *setting) verdict {
		patterns, bad := r.patterns(s)
		if bad != nil {
			return *bad
		}
		if v, ok := r.connector.get(twin); ok && v != "" && len(patterns) > 0 {
			return refused("set together with "+twin+", which Debezium does not take", "keep one of them")
		}
		put(r, patterns)
		return same("selects tables: regular expressions over the whole name, in any case")
	}
}

// patterns reads a list of regular expressions; \, is a comma in one.
func (r *reading) patterns(s *setting) ([]string, *verdict) {
	var list []string
	rest := s.value
	for start, i := 0, 0; ; i++ {
		switch {
		case i < len(rest) && rest[i] == '\\':
			i++
		case i >= len(rest) || rest[i] == ',':
			if item := strings.TrimSpace(rest[start:min(i, len(rest))]); item != "" {
				list = append(list, item)
			}
			start = i + 1
		}
		if i >= len(rest) {
			break
		}
	}
	for _, pattern := range list {
		if _, err := javaregex.CompileFold(pattern); err != nil {
			v := badPattern(err)
			return nil, &v
		}
	}
	return list, nil
}

// literal is a name of a table that means itself: the dot between schema and
// table matches itself whether it is escaped or not.
var literal = regexp.MustCompile(`^([a-z_][a-z0-9_]*)\\?\.([a-z_][a-z0-9_]*)$`)

// literalTable gives the table that a pattern means and no other.
func literalTable(pattern string) (string, bool) {
	m := literal.FindStringSubmatch(pattern)
	if m == nil {
		return "", false
	}
	return m[1] + "." + m[2], true
}

// literalTables gives the tables of a list, if every pattern means one.
func literalTables(patterns []string) []string {
	var tables []string
	for _, p := range patterns {
		t, ok := literalTable(p)
		if !ok {
			return nil
		}
		if !slices.Contains(tables, t) {
			tables = append(tables, t)
		}
	}
	return tables
}

// matchesAny says that one of the patterns, which compile, matches all of name.
func matchesAny(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		re, err := javaregex.CompileFold(p)
		return err == nil && re.MatchWhole(name)
	})
}

// inSchemas drops the tables whose schema the lists of schemas leave out; nil
// when they cannot be read.
func (r *reading) inSchemas(tables []string) []string {
	for _, key := range []string{"schema.include.list", "schema.exclude.list"} {
		s := r.connector.byKey[key]
		if s == nil {
			continue
		}
		patterns, bad := r.patterns(s)
		if bad != nil || s.unresolved != nil {
			return nil
		}
		if len(patterns) == 0 {
			continue
		}
		tables = slices.DeleteFunc(tables, func(table string) bool {
			schema, _, _ := strings.Cut(table, ".")
			return matchesAny(patterns, schema) != (key == "schema.include.list")
		})
	}
	return tables
}

func decideTables(r *reading, s *setting) verdict {
	v := patternList("table.exclude.list", func(r *reading, v []string) { r.spec.TableInclude = v })(r, s)
	if v.severity == SeverityRefused {
		return v
	}
	if len(r.spec.TableInclude) == 0 {
		if r.partial {
			return same("the tables are those of postgres.tables")
		}
		const does = "walpost starts only if every captured table has the router's columns"
		if r.set("schema.include.list") || r.set("schema.exclude.list") || r.set("table.exclude.list") || r.predicateSet() {
			return same(does)
		}
		return noted("every table of the database is captured; "+does, "Debezium starts, and fails at the first change of a table that is no outbox")
	}
	if tables := r.inSchemas(literalTables(r.spec.TableInclude)); len(tables) > 0 {
		r.over("postgres.tables", strings.Join(tables, ","), s)
		v.does = "the outbox tables"
	}
	return v
}

// decideColumns finds out whether a list hides a column that is used. Without a
// literal list of tables it cannot be known.
func (r *reading) decideColumns(s *setting, include bool) verdict {
	patterns, bad := r.patterns(s)
	if bad != nil {
		return *bad
	}
	const way = "remove it: the router takes the columns that it needs"
	if len(patterns) == 0 {
		return moot("the list is empty")
	}
	twin := "column.include.list"
	if include {
		twin = "column.exclude.list"
	}
	if v, ok := r.connector.get(twin); ok && v != "" {
		return refused("set together with "+twin+", which Debezium does not take", "keep one of them")
	}
	tables := literalTables(splitList(r.value("table.include.list", "")))
	if len(tables) == 0 {
		return refused("it may hide a column that the router uses", way)
	}
	for _, table := range tables {
		for _, column := range r.usedColumns() {
			if matchesAny(patterns, table+"."+column) != include {
				return refused("it hides column "+column+" of "+table+", which the router uses", way)
			}
		}
	}
	return ignored("the columns that it hides are used by no one")
}
