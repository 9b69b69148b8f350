package router_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/walpost/walpost/decoder"
	"github.com/walpost/walpost/internal/debezium/connect"
	"github.com/walpost/walpost/internal/debezium/router"
)

const usualHeader = "[id=da8d6de6-3b77-45ff-8f44-57db55a7a06c]"

// withDeleted is the usual table with the column is_deleted.
var withDeleted = with(col{name: "is_deleted", typ: boolean})

// typed is the table of the cases that rename every column.
var typed = []col{
	{name: "event_id*", typ: integer}, {name: "payload_id!", typ: integer}, {name: "my_route_field!", typ: varchar},
	{name: "event_type!", typ: bytea}, {name: "payload_body!", typ: bytea}, {name: "some_boolean!", typ: boolean}, {name: "p", typ: integer},
}

var typedConfig = []string{
	"table.field.event.id", "event_id", "table.field.event.key", "payload_id", "table.field.event.payload", "payload_body", "route.by.field", "my_route_field",
}

// The cases of Debezium's EventRouterTest, by its numbers in our list: a row, what
// the record is. Values are JSON where the case is about a schema.
func TestEventRouter(t *testing.T) {
	t.Parallel()
	expanding := pairs(jsonValue, []string{"table.expand.json.payload", "true"})
	expandingSchema := pairs(jsonSchema, []string{"table.expand.json.payload", "true"})
	textPayload := slices.Clone(withDeleted)
	textPayload[4].typ = text
	for _, test := range []struct {
		name    string
		config  []string
		columns []col
		rows    [][]string
		want    []string
	}{
		{"ER-09 canExtractTableFields", nil, withDeleted, [][]string{usualRow(null)}, []string{"outbox.event.User 10711fa5 {} " + usualHeader}},
		{"ER-10, ER-28 canSetDefaultMessageKey, canPassStringKey", []string{"key.converter", connect.ClassJSON}, nil, [][]string{usualRow()},
			[]string{`outbox.event.User {"schema":{"type":"string","optional":false},"payload":"10711fa5"} {} ` + usualHeader}},
		{"ER-11 canSetMessageKey", []string{"table.field.event.key", "type"}, nil, [][]string{usualRow()}, []string{"outbox.event.User UserCreated {} " + usualHeader}},
		{"ER-15 canRouteBasedOnField", []string{"route.by.field", "aggregatetype"}, nil,
			[][]string{usualRow(), {"ab720dd3-176d-40a6-96f3-6cf961d7df6a", "User", "10711fa5", "UserUpdate", "{}"}, {"ab720dd3-176d-40a6-96f3-6cf961d7df6a", "Address", "10711fa5", "AddressCreated", "{}"}},
			[]string{"outbox.event.User 10711fa5 {} " + usualHeader, "outbox.event.User 10711fa5 {} [id=ab720dd3-176d-40a6-96f3-6cf961d7df6a]", "outbox.event.Address 10711fa5 {} [id=ab720dd3-176d-40a6-96f3-6cf961d7df6a]"}},
		{"ER-16 canConfigureEveryTableField", []string{"table.field.event.id", "event_id", "table.field.event.key", "payload_id", "table.field.event.type", "event_type", "table.field.event.payload", "payload_body", "route.by.field", "payload_id"},
			[]col{{name: "event_id!", typ: varchar}, {name: "payload_id!", typ: varchar}, {name: "event_type!", typ: varchar}, {name: "payload_body", typ: varchar}},
			[][]string{{"da8d6de6-3b77-45ff-8f44-57db55a7a06c", "10711fa5", "UserCreated", "{}"}}, []string{"outbox.event.10711fa5 10711fa5 {} " + usualHeader}},
		{"ER-17 canInfluenceTableColumnTypes", pairs(typedConfig, jsonSchema, []string{"table.fields.additional.placement", "some_boolean:envelope:bool"}), typed,
			[][]string{{"2", "1232", "routename", `\x00`, `\x7b7d`, "t", null}},
			[]string{`outbox.event.routename 1232 {"schema":{"type":"struct","fields":[{"type":"bytes","optional":false,"field":"payload"},{"type":"boolean","optional":false,"field":"bool"}],"optional":false,"name":"app.db.outbox.routename.Value"},"payload":{"payload":"e30=","bool":true}} [id=2]`}},
		{"ER-18 canSetSchemaVersionWhenMoreThanPayloadIsInEnvelope", pairs(jsonSchema, []string{"table.field.event.schema.version", "version", "table.fields.additional.placement", "type:envelope:eventType"}),
			with(col{name: "version!", typ: integer}), [][]string{usualRow("1"), usualRow("3"), usualRow("1")}, []string{envelopeV("1"), envelopeV("3"), envelopeV("1")}},
		{"ER-19 shouldNotSetSchemaVersionByDefault", pairs(jsonSchema, []string{"table.field.event.schema.version", "version"}), with(col{name: "version!", typ: integer}),
			[][]string{usualRow("3")}, []string{`outbox.event.User 10711fa5 {"schema":{"type":"string","optional":true,"name":"io.debezium.data.Json","version":1},"payload":"{}"} ` + usualHeader}},
		{"ER-20 canSetPayloadTypeIntoTheEnvelope", pairs(jsonValue, []string{"table.fields.additional.placement", "type:envelope"}), nil, [][]string{usualRow()},
			[]string{`outbox.event.User 10711fa5 {"payload":"{}","type":"UserCreated"} ` + usualHeader}},
		{"ER-21 canSetPayloadTypeIntoTheEnvelopeWithAlias", pairs(jsonValue, []string{"table.fields.additional.placement", "type:envelope:aggregateType"}), nil, [][]string{usualRow()},
			[]string{`outbox.event.User 10711fa5 {"payload":"{}","aggregateType":"UserCreated"} ` + usualHeader}},
		{"ER-22 canSetMultipleFieldsIntoTheEnvelope", pairs(jsonValue, []string{"table.fields.additional.placement", "type:envelope:payloadType, aggregateid:envelope:payloadId,type:header:payloadType"}), nil, [][]string{usualRow()},
			[]string{`outbox.event.User 10711fa5 {"payload":"{}","payloadType":"UserCreated","payloadId":"10711fa5"} ` + strings.TrimSuffix(usualHeader, "]") + " payloadType=UserCreated]"}},
		{"ER-29 canSetBinaryMessageKey", []string{"table.field.event.key", "type", "key.converter", connect.ClassByteArray}, []col{usual[0], usual[1], usual[2], {name: "type!", typ: bytea}, usual[4]},
			[][]string{{"da8d6de6-3b77-45ff-8f44-57db55a7a06c", "User", "10711fa5", `\x612055736572437265617465640a`, "{}"}}, []string{"outbox.event.User a UserCreated\n {} " + usualHeader}},
		{"ER-30 canPassBinaryKey", []string{"key.converter", connect.ClassByteArray}, []col{usual[0], usual[1], {name: "aggregateid!", typ: bytea}, usual[3], usual[4]},
			[][]string{{"da8d6de6-3b77-45ff-8f44-57db55a7a06c", "User", `\x612062696e617279206b6579`, "UserCreated", "{}"}}, []string{"outbox.event.User a binary key {} " + usualHeader}},
		{"ER-31 canPassIntKey", nil, []col{usual[0], usual[1], {name: "aggregateid!", typ: integer}, usual[3], usual[4]},
			[][]string{{"da8d6de6-3b77-45ff-8f44-57db55a7a06c", "User", "54321", "UserCreated", "{}"}}, []string{"outbox.event.User 54321 {} " + usualHeader}},
		{"ER-32 canPassBinaryMessage", []string{"value.converter", connect.ClassByteArray}, []col{usual[0], usual[1], usual[2], usual[3], {name: "payload", typ: bytea}},
			[][]string{{"da8d6de6-3b77-45ff-8f44-57db55a7a06c", "User", "a key", "UserCreated", `\x612062696e617279206d657373616765`}}, []string{"outbox.event.User a key a binary message " + usualHeader}},
		{"ER-33 canMarkAnEventAsDeleted", pairs(jsonValue, []string{"table.fields.additional.placement", "is_deleted:envelope:deleted", "route.tombstone.on.empty.payload", "true"}), textPayload,
			[][]string{usualRow("t"), {"da8d6de6-3b77-45ff-8f44-57db55a7a06c", "User", "10711fa5", "UserCreated", "", "t"}},
			[]string{`outbox.event.User 10711fa5 {"payload":"{}","deleted":true} ` + usualHeader, "outbox.event.User 10711fa5 ∅ " + usualHeader}},
		{"ER-34 noTombstoneIfNotConfigured", pairs(jsonValue, []string{"table.fields.additional.placement", "is_deleted:envelope:deleted"}), textPayload,
			[][]string{usualRow("t"), {"da8d6de6-3b77-45ff-8f44-57db55a7a06c", "User", "10711fa5", "UserCreated", "", "t"}},
			[]string{`outbox.event.User 10711fa5 {"payload":"{}","deleted":true} ` + usualHeader, `outbox.event.User 10711fa5 {"payload":"","deleted":true} ` + usualHeader}},
		{"ER-35 canExpandJsonPayloadIfConfigured", expanding, nil,
			[][]string{payload(`{"fullName": "John Doe", "enabled": true, "rating": 4.9, "age": 42, "pets": ["dog", "cat"], "petObjects": [{"type": "dog"}, {"type": "cat"}]}`)},
			[]string{`outbox.event.User 10711fa5 {"fullName":"John Doe","enabled":true,"rating":4.9,"age":42,"pets":["dog","cat"],"petObjects":[{"type":"dog"},{"type":"cat"}]} ` + usualHeader}},
		{"ER-36 shouldNotWarnOnNullPayloadWhenExpandJsonPayloadEnabled", pairs(expanding, []string{"route.tombstone.on.empty.payload", "true"}), nil,
			[][]string{payload(null)}, []string{"outbox.event.User 10711fa5 ∅ " + usualHeader}},
		{"ER-37 canExpandJsonWithNestedArraysWhereFirstArrayIsEmpty", expanding, nil,
			[][]string{payload(`{"petObjects": [{"type": "dog", "colors": []}, {"type": "cat", "colors": [{"name": "white"}]}]}`)},
			[]string{`outbox.event.User 10711fa5 {"petObjects":[{"type":"dog","colors":[]},{"type":"cat","colors":[{"name":"white"}]}]} ` + usualHeader}},
		{"ER-38 shouldExpandJSONPayloadWithEmptyArrayAndRemoveThatArray", expanding, nil,
			[][]string{payload(`{"petObjects": [{"type": "dog", "colors": []}]}`)}, []string{`outbox.event.User 10711fa5 {"petObjects":[{"type":"dog"}]} ` + usualHeader}},
		{"ER-39 shouldNotExpandJSONPayloadIfNotConfigured", nil, nil, [][]string{payload(`{"fullName": "John Doe", "rating": 4.9, "age": 42}`)},
			[]string{`outbox.event.User 10711fa5 {"fullName": "John Doe", "rating": 4.9, "age": 42} ` + usualHeader}},
		{"ER-40 canExpandJsonPayloadWithAdditionalFieldInEnvelope", pairs(expandingSchema, []string{"table.fields.additional.placement", "type:envelope"}), nil, [][]string{payload(`{"fullName": "John Doe"}`)},
			[]string{`outbox.event.User 10711fa5 {"schema":{"type":"struct","fields":[{"type":"struct","fields":[{"type":"string","optional":true,"field":"fullName"}],"optional":true,"name":"payload","field":"payload"},{"type":"string","optional":false,"field":"type"}],"optional":false,"name":"app.db.outbox.User.Value"},"payload":{"payload":{"fullName":"John Doe"},"type":"UserCreated"}} ` + usualHeader}},
		{"ER-41 canExpandJsonArrayWithFirstElementNull", expanding, nil, [][]string{payload(`{"fullName": "John Doe", "numbers": [null, 2, 3]}`)},
			[]string{`outbox.event.User 10711fa5 {"fullName":"John Doe","numbers":[null,2,3]} ` + usualHeader}},
		{"ER-42 canExpandJsonArrayWithComplexElements", expandingSchema, nil,
			[][]string{complexPayload(`[{"b": true, "s": "x"}]`), complexPayload(`[{"b": true, "s": "x"}, {"b": false, "s": "y"}]`)},
			[]string{complexRecord(`[{"b":true,"s":"x"}]`), complexRecord(`[{"b":true,"s":"x"},{"b":false,"s":"y"}]`)}},
		{"ER-43 canSetFieldIntoTheEnvelopeWithMissingField", pairs(jsonValue, []string{"table.fields.additional.placement", "nonExistingField:envelope:alias", "table.field.additional.missing", "ignore"}), nil, [][]string{usualRow()},
			[]string{`outbox.event.User 10711fa5 {"payload":"{}"} ` + usualHeader}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			columns := test.columns
			if columns == nil {
				columns = usual
			}
			b := setup(t, config(t, test.config...), columns)
			for i, row := range test.rows {
				if got := show(b.must(row)); got != test.want[i] {
					t.Errorf("row %d\n got %s\nwant %s", i+1, got, test.want[i])
				}
			}
		})
	}
}

func payload(s string) []string {
	row := usualRow()
	row[4] = s
	return row
}

func complexPayload(eans string) []string {
	return payload(`{"id": 1, "attributes": [{"id": 1, "adr": null, "eans": ` + eans + `, "booleans": [true], "strings": ["a"]}]}`)
}

func complexRecord(eans string) string {
	element := `{"type":"struct","fields":[{"type":"boolean","optional":true,"field":"b"},{"type":"string","optional":true,"field":"s"}],"optional":true,"name":"payload.attributes.eans"}`
	return `outbox.event.User 10711fa5 {"schema":{"type":"struct","fields":[{"type":"int32","optional":true,"field":"id"},{"type":"array","items":{"type":"struct","fields":[` +
		`{"type":"int32","optional":true,"field":"id"},{"type":"array","items":` + element + `,"optional":true,"field":"eans"},` +
		`{"type":"array","items":{"type":"boolean","optional":true},"optional":true,"field":"booleans"},{"type":"array","items":{"type":"string","optional":true},"optional":true,"field":"strings"}],` +
		`"optional":true,"name":"payload.attributes"},"optional":true,"field":"attributes"}],"optional":true,"name":"payload"},` +
		`"payload":{"id":1,"attributes":[{"id":1,"eans":` + eans + `,"booleans":[true],"strings":["a"]}]}} ` + usualHeader
}

func envelopeV(version string) string {
	return `outbox.event.User 10711fa5 {"schema":{"type":"struct","fields":[{"type":"string","optional":true,"name":"io.debezium.data.Json","version":1,"field":"payload"},{"type":"string","optional":false,"field":"eventType"}],"optional":false,"name":"app.db.outbox.User.Value","version":` +
		version + `},"payload":{"payload":"{}","eventType":"UserCreated"}} ` + usualHeader
}

// ER-01, ER-02 and ER-07: tombstones and deletes come as one message here.
func TestEventRouterSkips(t *testing.T) {
	t.Parallel()
	b := setup(t, config(t), usual)
	for _, test := range []struct {
		name   string
		change *decoder.Change
		want   router.Outcome
	}{
		{"ER-01, ER-02 canSkipTombstone, canSkipDeletion", b.change(decoder.KindDelete, usualRow(), nil), router.SkippedDelete},
		{"ER-07 canSkipUpdates", b.change(decoder.KindUpdate, nil, usualRow()), router.SkippedUpdate},
		// ER-03, 05 and 06 are about records that are no changes: there are none such here.
		{"ER-03, ER-05, ER-06 canSkipMessagesWithoutDebeziumCdcEnvelope", &decoder.Change{Kind: decoder.KindMessage}, router.SkippedOther},
		{"truncate", &decoder.Change{Kind: decoder.KindTruncate, Relations: []*decoder.Relation{b.rel}}, router.SkippedTruncate},
	} {
		if got, err := b.plan.Record(test.change, &b.rec); got != test.want || err != nil {
			t.Errorf("%s: got %s, %v", test.name, got, err)
		}
	}
	// ER-03, ER-05, ER-06: what the router does not know passes it unchanged.
	o := config(t)
	o.HeartbeatTopic = "__debezium-heartbeat.app"
	b = setup(t, o, usual)
	if err := b.router.Heartbeat(clock, &b.rec); err != nil || show(&b.rec) != "__debezium-heartbeat.app Struct{serverName=app} Struct{ts_ms=1796183810019} []" {
		t.Errorf("got %s, %v", show(&b.rec), err)
	}
}

// ER-04: a message that looks like a change of a row and is none is an error.
func TestEventRouterRefusesAnotherRelation(t *testing.T) {
	t.Parallel()
	b := setup(t, config(t), usual)
	c := b.change(decoder.KindInsert, nil, usualRow())
	c.New = c.New[:1]
	if _, err := b.plan.Record(c, &b.rec); err == nil {
		t.Error("a row with too few columns is accepted")
	}
	c = b.change(decoder.KindInsert, nil, usualRow())
	c.Relation = &decoder.Relation{Namespace: "db", Name: "outbox", Columns: b.rel.Columns}
	if _, err := b.plan.Record(c, &b.rec); err == nil {
		t.Error("a row of another relation is accepted")
	}
}

// ER-08.
func TestEventRouterCanFailOnUpdates(t *testing.T) {
	t.Parallel()
	b := setup(t, config(t, "table.op.invalid.behavior", " FATAL "), usual)
	_, err := b.plan.Record(b.change(decoder.KindUpdate, nil, usualRow()), &b.rec)
	r := reject(t, err)
	if r.Table != "db.outbox" || r.EventID != "da8d6de6-3b77-45ff-8f44-57db55a7a06c" || r.LSN != 0x200 {
		t.Errorf("got %+v", r)
	}
}

// ER-13, ER-14.
func TestEventRouterTimestamp(t *testing.T) {
	t.Parallel()
	b := setup(t, config(t), usual)
	if got := b.must(usualRow()).Time; !got.Equal(clock) {
		t.Errorf("ER-13: got %s", got)
	}
	b = setup(t, config(t, "table.field.event.timestamp", "event_timestamp"), with(col{name: "event_timestamp", typ: timestamp, mod: 3}))
	want := time.UnixMilli(14222264625338)
	if got := b.must([]string{"166080d9-3b0e-4a04-81fe-2058a7386f1f", "User", "420b186d", "UserCreated", "{}", want.UTC().Format("2006-01-02 15:04:05.000")}).Time; !got.Equal(want) {
		t.Errorf("ER-14: got %s, want %s", got, want)
	}
}

// ER-23.
func TestEventRouterPartition(t *testing.T) {
	t.Parallel()
	b := setup(t, config(t, pairs(typedConfig, jsonValue, []string{"table.fields.additional.placement", "p:partition"})...), typed)
	if rec := b.must([]string{"2", "1232", "routename", `\x00`, `\x7b7d`, "t", "123"}); rec.Partition != 123 {
		t.Errorf("got %d", rec.Partition)
	}
}

// ER-12, ER-24 to ER-27, ER-44, and more that cannot start.
func TestEventRouterRefuses(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		config []string
		want   string
	}{
		{"ER-12 failsOnInvalidSetMessageKey", []string{"table.field.event.key", "fakefield"}, "column fakefield: there is no such column"},
		{"ER-24 shouldFailOnInvalidConfigurationForTopicRegex", []string{"route.topic.regex", " [[a-z]"}, "unclosed class"},
		{"ER-25 shouldFailOnInvalidConfigurationForAdditionalFields", []string{"table.fields.additional.placement", "type"}, "neither a pair nor a trio"},
		{"ER-26 shouldFailOnInvalidConfigurationForAdditionalFieldsEmpty", []string{"table.fields.additional.placement", ""}, "neither a pair nor a trio"},
		{"ER-27 shouldFailOnInvalidConfigurationForOperationBehavior", []string{"table.op.invalid.behavior", "invalidOption"}, "neither warn, error nor fatal"},
		{"ER-44 shouldFailOnMissingField", []string{"table.fields.additional.placement", "nonExistingField:envelope:alias"}, "column nonExistingField: there is no such column"},
		{"four parts", []string{"table.fields.additional.placement", "type:header:a:b"}, "neither a pair nor a trio"},
		{"a placement that is none", []string{"table.fields.additional.placement", "type:heder"}, `no placement "heder"`},
		{"two fields of one name", []string{"table.fields.additional.placement", "type:envelope:payload"}, "two fields payload"},
		{"a group that is none", []string{"route.topic.replacement", "x${nope}"}, `no group "nope"`},
		{"no payload", []string{"table.field.event.payload", "body"}, "column body: there is no such column"},
		{"no id", []string{"table.field.event.id", "event_id"}, "column event_id: there is no such column"},
		{"no timestamp", []string{"table.field.event.timestamp", "at"}, "column at: there is no such column"},
		{"a number gives the topic", []string{"route.by.field", "n"}, "column n: its type cannot give a topic"},
		{"timestamptz", []string{"table.field.event.timestamp", "tz"}, "column tz: its type cannot give the record's timestamp"},
		{"bigint as time", []string{"table.field.event.timestamp", "big"}, "column big: its type cannot give the record's timestamp"},
		{"connect's time", []string{"table.field.event.timestamp", "ts", "time.precision.mode", "connect"}, "column ts: its type cannot give the record's timestamp"},
		{"iso time", []string{"table.field.event.timestamp", "ts", "time.precision.mode", "isostring"}, "column ts: its type cannot give the record's timestamp"},
		{"bigint as partition", []string{"table.fields.additional.placement", "big:partition"}, "column big: its type cannot give a partition"},
		{"smallint as partition", []string{"table.fields.additional.placement", "small:partition"}, "column small: its type cannot give a partition"},
		{"bigint as version", []string{"table.fields.additional.placement", "type:envelope", "table.field.event.schema.version", "big"}, "column big: its type cannot give a schema's version"},
		{"text for a converter of bytes", []string{"key.converter", connect.ClassByteArray}, "column aggregateid: "},
		{"jsonb for a converter of bytes", []string{"value.converter", connect.ClassByteArray}, "column payload: "},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			columns := with(col{name: "n", typ: integer}, col{name: "tz", typ: timestamptz}, col{name: "big", typ: bigint}, col{name: "small", typ: smallint}, col{name: "ts", typ: timestamp})
			r, err := router.New(config(t, test.config...))
			if err == nil {
				_, err = r.Compile(relation("db", "outbox", columns))
			}
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
			checkReject(t, err)
		})
	}
}
