package router_test

import (
	"strings"
	"testing"

	"github.com/walpost/walpost/internal/debezium/connect"
	"github.com/walpost/walpost/internal/debezium/router"
)

// TestDebugTextIsRefused: bytes through StringConverter are Java's text of a
// buffer, which is reproduced only for those who say so.
func TestDebugTextIsRefused(t *testing.T) {
	t.Parallel()
	bytesPayload := []col{{name: "id*", typ: uuid}, {name: "aggregatetype!", typ: varchar}, {name: "aggregateid!", typ: varchar}, {name: "payload", typ: bytea}}
	header := []string{"table.fields.additional.placement", "raw:header"}
	for name, c := range map[string]struct {
		columns []col
		config  []string
		column  string // "" is accepted
	}{
		"payload":          {bytesPayload, nil, "payload"},
		"payload as JSON":  {bytesPayload, jsonValue, ""},
		"payload as text":  {usual, nil, ""},
		"payload as hex":   {bytesPayload, []string{"binary.handling.mode", "hex"}, ""},
		"key":              {[]col{{name: "id*", typ: uuid}, {name: "aggregatetype!", typ: varchar}, {name: "aggregateid!", typ: bytea}, {name: "payload", typ: text}}, nil, "aggregateid"},
		"nullable header":  {with(col{name: "raw", typ: bytea}), pairs(header, []string{"header.converter", connect.ClassString}), "raw"},
		"header of base64": {with(col{name: "raw", typ: bytea}), header, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, refused := range []bool{false, true} {
				o := config(t, c.config...)
				o.NoDebugText = refused
				r, err := router.New(o)
				if err != nil {
					t.Fatal(err)
				}
				_, err = r.Compile(relation("db", "outbox", c.columns))
				switch {
				case (err != nil) != (refused && c.column != ""):
					t.Errorf("NoDebugText %v: %v", refused, err)
				case err != nil && (!strings.Contains(err.Error(), c.column) || !strings.Contains(err.Error(), "HeapByteBuffer")):
					t.Errorf("error %q, want the column and the text", err)
				}
			}
		})
	}
}
