package main

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
)

// generated is a random configuration with its rows.
type generated struct {
	name    string
	prelude string // types
	table   string // quoted
	columns []column
	places  []string // of table.fields.additional.placement
	config  map[string]string
	rows    []row
}

type column struct {
	name string
	kind kind
	rest string // not null, default
	fix  func(d dice) string
}

// row is what is done about one event: an insert, and more.
type row struct {
	id  string
	sql string
}

const (
	stringConverter = "org.apache.kafka.connect.storage.StringConverter"
	jsonConverter   = "org.apache.kafka.connect.json.JsonConverter"
	routerPrefix    = "transforms.outbox."
)

func ident(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// generate makes the configuration of a number, of a seed.
func generate(seed int64, number, rows int) *generated {
	d := dice{rand.New(rand.NewPCG(uint64(seed), uint64(number)))}
	g := &generated{
		name:    fmt.Sprintf("seed-%d-%d", seed, number),
		prelude: "create type mood as enum ('happy', 'sad', 'so so', 'it''s');\ncreate domain note as text;\n",
		config: map[string]string{
			"connector.class": "io.debezium.connector.postgresql.PostgresConnector", "tasks.max": "1",
			"topic.prefix": fmt.Sprintf("app%d-%d", seed, number), "database.dbname": "app", "plugin.name": "pgoutput", "slot.name": "s",
			"publication.name": "p", "publication.autocreate.mode": "filtered", "snapshot.mode": "no_data",
			"transforms": "outbox", routerPrefix + "type": "io.debezium.transforms.outbox.EventRouter",
		},
	}
	name := pick(d, "outboxevent", "outboxevent", "outbox_events", "Outbox", "outbox events", "out-box", "ausgänge")
	g.table = "public." + ident(name)
	g.config["table.include.list"] = "public." + name
	g.modes(d)
	g.converters(d)
	g.outbox(d)
	g.extras(d)
	for i := range rows {
		g.rows = append(g.rows, g.row(d, i))
	}
	return g
}

func (g *generated) set(d dice, key string, values ...string) {
	if v := pick(d, values...); v != "" {
		g.config[key] = v
	}
}

func (g *generated) modes(d dice) {
	g.set(d, "decimal.handling.mode", "", "precise", "string", "double")
	g.set(d, "time.precision.mode", "", "", "adaptive", "connect", "isostring", "microseconds", "nanoseconds", "adaptive_time_microseconds")
	g.set(d, "binary.handling.mode", "", "", "bytes", "base64", "base64-url-safe", "hex")
	g.set(d, "interval.handling.mode", "", "numeric", "string")
	g.set(d, "extended.headers.enabled", "", "", "true", "false")
	g.set(d, routerPrefix+"route.tombstone.on.empty.payload", "", "true", "false")
	g.set(d, routerPrefix+"table.op.invalid.behavior", "", "warn", "error", "WARN")
}

func (g *generated) converters(d dice) {
	for _, role := range []string{"key", "value", "header"} {
		class := pick(d, stringConverter, jsonConverter)
		if role == "header" && d.one(2) {
			continue // SimpleHeaderConverter
		}
		g.config[role+".converter"] = class
		if class == jsonConverter {
			g.set(d, role+".converter.schemas.enable", "false", "true")
			g.set(d, role+".converter.decimal.format", "", "", "NUMERIC", "BASE64")
			g.set(d, role+".converter.replace.null.with.default", "", "", "false")
		}
	}
}

func (g *generated) isJSON(role string) bool { return g.config[role+".converter"] == jsonConverter }

func (g *generated) field(d dice, option, usual string) string {
	name := usual
	if d.one(3) {
		name = pick(d, usual+"_x", strings.ToUpper(usual), "the "+usual, usual+"ü")
		g.config[routerPrefix+option] = name
	}
	return name
}

func find(sql string) kind {
	list := kinds()
	return list[slices.IndexFunc(list, func(k kind) bool { return k.sql == sql })]
}

// outbox makes the columns that every outbox table has.
func (g *generated) outbox(d dice) {
	id := kind{sql: pick(d, "uuid", "uuid", "uuid", "bigint", "text", "varchar(40)", "integer")}
	g.columns = append(g.columns, column{name: g.field(d, "table.field.event.id", "id"), kind: id, rest: "primary key"})

	route := kind{sql: pick(d, "text", "varchar(255)", "note")}
	types := []string{"Order", "User", "a.b-c_D", "X-1"}
	g.columns = append(g.columns, column{
		name: g.field(d, "route.by.field", "aggregatetype"), kind: route, rest: "not null",
		fix: func(d dice) string { return quote(pick(d, types...)) },
	})
	switch d.IntN(5) {
	case 0:
		g.config[routerPrefix+"route.topic.replacement"] = "events.${routedByValue}.v1"
	case 1:
		g.config[routerPrefix+"route.topic.regex"] = "(.*)-(.*)"
		g.config[routerPrefix+"route.topic.replacement"] = "$2.$1"
	case 2:
		g.config[routerPrefix+"route.topic.regex"] = "(?i)(?<kind>[a-z]).*"
		g.config[routerPrefix+"route.topic.replacement"] = "t-${kind}"
	}

	key := find(pick(d, "text", "text", "varchar(40)", "uuid", "integer", "bigint", "char(5)", "numeric(10,2)", "timestamp", "mood"))
	keys := make([]string, 6)
	for i := range keys {
		keys[i] = key.value(d)
	}
	g.columns = append(g.columns, column{
		name: g.field(d, "table.field.event.key", "aggregateid"), kind: key, rest: pick(d, "not null", "not null", ""),
		fix: func(d dice) string { return pick(d, keys...) },
	})
	g.columns = append(g.columns, column{name: "type", kind: find("varchar(40)"), rest: pick(d, "not null", "", "default 'Unknown'")})

	payload := find(pick(d, "jsonb", "jsonb", "json", "text", "varchar(40)"))
	if g.isJSON("value") && d.one(4) {
		payload = find(pick(d, "bytea", "integer", "numeric(10,2)", "timestamptz", "text[]", "xml", "uuid", "point"))
	}
	rest := pick(d, "", "", "not null")
	if payload.sql == "jsonb" && d.one(6) {
		rest = `default '{"d": 1}'`
	}
	g.columns = append(g.columns, column{name: g.field(d, "table.field.event.payload", "payload"), kind: payload, rest: rest})
	if at := len(g.columns) - 1; g.isJSON("value") && payload.sql == "jsonb" && d.one(2) {
		g.config[routerPrefix+"table.expand.json.payload"] = "true"
		g.set(d, routerPrefix+"table.json.payload.null.behavior", "", "ignore", "optional_bytes")
		g.columns[at].fix = func(d dice) string { return quote(d.jsonObject(2, true)) }
	}
}

// extras makes more columns, and what the router does with them.
func (g *generated) extras(d dice) {
	list := kinds()
	names := []string{"version", "Upper", "with space", "ünï", "a.b", "x1", "x2", "x3", "x4", "$d", "q'q"}
	d.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	if g.config["header.converter"] == stringConverter {
		// What depends on the JVM is refused: the address of a byte array, and the text
		// of a time in the zone that the JVM is in.
		list = slices.DeleteFunc(list, func(k kind) bool { return strings.HasPrefix(k.sql, "bit") || k.sql == "point" })
		if g.config["time.precision.mode"] == "connect" {
			delete(g.config, "time.precision.mode")
		}
	}
	for _, name := range names[:d.IntN(9)] {
		c := column{name: name, kind: pick(d, list...), rest: pick(d, "", "", "not null")}
		if c.rest == "" && d.one(4) {
			c.rest = "default " + c.kind.value(d)
		}
		g.columns = append(g.columns, c)
		placement := pick(d, "header", "header", "HEADER", "")
		if g.isJSON("value") && d.one(3) {
			placement = "envelope"
		}
		if placement != "" {
			g.places = append(g.places, name+":"+placement+pick(d, "", "", ":alias "+name))
		}
	}
	if d.one(4) {
		keyless := !strings.Contains(g.columns[2].rest, "not null")
		g.columns = append(g.columns, column{name: "part", kind: kind{sql: "integer"}, fix: func(d dice) string {
			if d.one(2) && !keyless { // with neither, the partition is the producer's choice
				return "null"
			}
			return fmt.Sprint(d.IntN(12))
		}})
		g.places = append(g.places, "part:partition")
	}
	if d.one(4) {
		g.places = append(g.places, "missing:header")
		g.config[routerPrefix+"table.field.additional.missing"] = "ignore"
	}
	if precision := g.config["time.precision.mode"]; d.one(3) && precision != "connect" && precision != "isostring" {
		g.columns = append(g.columns, column{name: "at", kind: kind{sql: pick(d, "timestamp", "timestamp(3)")}, fix: func(d dice) string {
			return pick(d, "null", "'2019-03-24 20:52:59.123456'", "'1999-12-31 23:59:59.9999'", "'1970-01-01 00:00:00.001999'", "'2020-01-01'")
		}})
		g.config[routerPrefix+"table.field.event.timestamp"] = "at"
		// Without the run's id nobody knows which times are the clock's.
		delete(g.config, "extended.headers.enabled")
	}
	// The router keeps one schema for a version, which expanded payloads do not fit.
	if d.one(3) && g.config[routerPrefix+"table.expand.json.payload"] == "" {
		g.columns = append(g.columns, column{name: "schemaversion", kind: kind{sql: "integer"}, fix: func(d dice) string { return pick(d, "null", "1", "2") }})
		g.config[routerPrefix+"table.field.event.schema.version"] = "schemaversion"
	}
}

// row makes the statements about one event. Its id says its number.
func (g *generated) row(d dice, number int) row {
	r := row{id: fmt.Sprintf("%d", 1000000+number)}
	if g.columns[0].kind.sql == "uuid" {
		r.id = fmt.Sprintf("00000000-0000-4000-8000-%012d", 1000000+number)
	}
	var names, values []string
	for i, c := range g.columns {
		names = append(names, ident(c.name))
		switch {
		case i == 0:
			values = append(values, quote(r.id))
		case c.fix != nil && (c.kind.value == nil || c.rest != "" || !d.one(6)):
			values = append(values, c.fix(d))
		case c.rest != "not null" && d.one(4):
			values = append(values, pick(d, "null", "null", "default"))
		default:
			values = append(values, c.kind.value(d))
		}
	}
	r.sql = fmt.Sprintf("insert into %s (%s) values (%s);\n", g.table, strings.Join(names, ", "), strings.Join(values, ", "))
	is := fmt.Sprintf(" where %s = %s;\n", names[0], quote(r.id))
	switch d.IntN(12) {
	case 0:
		r.sql += "update " + g.table + " set type = 'changed'" + is
	case 1:
		r.sql += "delete from " + g.table + is
	case 2:
		// A new key publishes the row again.
		r.sql += fmt.Sprintf("update %s set %s = %s", g.table, names[0], quote(strings.Replace(r.id, "100", "200", 1))) + is
	case 3:
		r.sql = "begin;\n" + r.sql + "delete from " + g.table + is + "commit;\n"
	}
	return r
}

// corpus is it in the form that runs.
func (g *generated) corpus() *corpus {
	c := &corpus{name: g.name, outcome: outcome{Java: defaultJava}}
	var lines []string
	for _, col := range g.columns {
		lines = append(lines, strings.TrimSpace("  "+ident(col.name)+" "+col.kind.sql+" "+col.rest))
	}
	c.table = g.prelude + "create table " + g.table + " (\n  " + strings.Join(lines, ",\n  ") + "\n);\n"
	for _, r := range g.rows {
		c.rows += r.sql
	}
	config := maps.Clone(g.config)
	if len(g.places) > 0 {
		config[routerPrefix+"table.fields.additional.placement"] = strings.Join(g.places, ",")
	}
	c.connector = connectorFile{g.name, config}
	return c
}
