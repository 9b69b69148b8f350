package router_test

import (
	"testing"
	"time"

	"github.com/walpost/walpost/decoder"
	"github.com/walpost/walpost/internal/debezium/router"
	"github.com/walpost/walpost/sink"
)

// The cases of Debezium's OutboxEventRouterIT, by its numbers in our list.
func TestOutboxEventRouter(t *testing.T) {
	t.Parallel()
	const (
		contexts = "__debezium.context.connectorLogicalName=test_server __debezium.context.taskId=0 __debezium.context.connectorName=postgresql __debezium.context.runId=" + runID + " "
		email    = `{"email": "gh@mefi.in"}`
		quoted   = `"{\"email\": \"gh@mefi.in\"}"`
	)
	four := with(col{name: "version!", typ: integer}, col{name: "somebooltype!", typ: boolean}, col{name: "createdat!", typ: timestamp}, col{name: "is_deleted", typ: boolean, def: "false"})
	asText := append([]col(nil), usual...)
	asText[4].typ = varchar
	all := pairs(jsonSchema, []string{
		"table.field.event.schema.version", "version", "table.field.event.timestamp", "createdat", "table.fields.additional.placement",
		"version:envelope:eventVersion,aggregatetype:envelope:aggregateType,somebooltype:envelope:someBoolType,somebooltype:header,is_deleted:envelope:deleted",
	})
	schema := `{"type":"struct","fields":[{"type":"string","optional":true,"name":"io.debezium.data.Json","version":1,"field":"payload"},{"type":"int32","optional":false,"field":"eventVersion"},` +
		`{"type":"string","optional":false,"field":"aggregateType"},{"type":"boolean","optional":false,"field":"someBoolType"},{"type":"boolean","optional":true,"default":false,"field":"deleted"}],` +
		`"optional":false,"name":"test_server.outboxsmtit.outbox.UserEmail.Value","version":1}`
	for _, test := range []struct {
		name    string
		config  []string
		columns []col
		row     []string
		want    string
		time    int64
	}{
		{"IT-01 shouldConsumeRecordsFromInsert", nil, usual, []string{"59a42efd-b015-44a9-9dde-cb36d9002425", "User", "10711fa5", "UserCreated", "{}"},
			"outbox.event.User 10711fa5 {} [" + contexts + "id=59a42efd-b015-44a9-9dde-cb36d9002425]", 0},
		{"IT-02 shouldSendEventTypeAsHeader", []string{"table.fields.additional.placement", "type:header:eventType"}, usual, []string{"59a42efd-b015-44a9-9dde-cb36d9002425", "User", "10711fa5", "UserCreated", email},
			"outbox.event.User 10711fa5 " + email + " [" + contexts + "id=59a42efd-b015-44a9-9dde-cb36d9002425 eventType=UserCreated]", 0},
		{"IT-03 shouldSendEventTypeAsValue", pairs(jsonValue, []string{"table.fields.additional.placement", "type:envelope:eventType"}), usual, []string{"d4da2428-8b19-11ea-bc55-0242ac130003", "User", "9948fcad", "UserCreated", email},
			`outbox.event.User 9948fcad {"payload":` + quoted + `,"eventType":"UserCreated"} [` + contexts + "id=d4da2428-8b19-11ea-bc55-0242ac130003]", 0},
		{"IT-04 shouldRespectJsonFormatAsString", jsonValue, usual, []string{"f9171eb6-19f3-4579-9206-0e179d2ebad7", "User", "7bdf2e9e", "UserUpdated", email},
			"outbox.event.User 7bdf2e9e " + quoted + " [" + contexts + "id=f9171eb6-19f3-4579-9206-0e179d2ebad7]", 0},
		{"IT-05 shouldSupportAllFeatures", all, four, []string{"f9171eb6-19f3-4579-9206-0e179d2ebad7", "UserEmail", "7bdf2e9e", "UserUpdated", email, "1", "t", "2019-03-24 20:52:59", null},
			`outbox.event.UserEmail 7bdf2e9e {"schema":` + schema + `,"payload":{"payload":` + quoted + `,"eventVersion":1,"aggregateType":"UserEmail","someBoolType":true,"deleted":false}} [` + contexts + "id=f9171eb6-19f3-4579-9206-0e179d2ebad7 somebooltype=true]", 1553460779000},
		{"IT-06 shouldConvertMicrosecondsTimestampToMilliseconds", []string{"table.field.event.timestamp", "createdat"}, with(col{name: "createdat!", typ: timestamp}), []string{"f9171eb6-19f3-4579-9206-0e179d2ebad7", "UserEmail", "7bdf2e9e", "UserUpdated", email, "2019-03-24 20:52:59"},
			"outbox.event.UserEmail 7bdf2e9e " + email + " [" + contexts + "id=f9171eb6-19f3-4579-9206-0e179d2ebad7]", 1553460779000},
		{"IT-07 shouldNotProduceTombstoneEventForNullPayload", all, four, []string{"a9d76f78-bda6-48d3-97ed-13a146163218", "UserEmail", "a9d76f78", "UserUpdated", null, "1", "t", "2019-03-24 20:52:59", "t"},
			`outbox.event.UserEmail a9d76f78 {"schema":` + schema + `,"payload":{"payload":null,"eventVersion":1,"aggregateType":"UserEmail","someBoolType":true,"deleted":true}} [` + contexts + "id=a9d76f78-bda6-48d3-97ed-13a146163218 somebooltype=true]", 1553460779000},
		{"IT-08 shouldProduceTombstoneEventForNullPayload", pairs(all, []string{"route.tombstone.on.empty.payload", "true"}), four, []string{"a9d76f78-bda6-48d3-97ed-13a146163218", "UserEmail", "a9d76f78", "UserUpdated", null, "1", "t", "2019-03-24 20:52:59", "t"},
			"outbox.event.UserEmail a9d76f78 ∅ [" + contexts + "id=a9d76f78-bda6-48d3-97ed-13a146163218 somebooltype=true]", 1553460779000},
		{"IT-09 shouldProduceTombstoneEventForEmptyPayload", []string{"route.tombstone.on.empty.payload", "true"}, asText, []string{"a9d76f78-bda6-48d3-97ed-13a146163218", "UserEmail", "a9d76f78", "UserUpdated", ""},
			"outbox.event.UserEmail a9d76f78 ∅ [" + contexts + "id=a9d76f78-bda6-48d3-97ed-13a146163218]", 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			o := config(t, test.config...)
			o.TopicPrefix, o.ContextHeaders = "test_server", 4
			r, err := router.New(o)
			if err != nil {
				t.Fatal(err)
			}
			b := &bench{t: t, router: r}
			b.rel, b.table = relation("outboxsmtit", "outbox", test.columns)
			if b.plan, err = r.Compile(b.rel, b.table); err != nil {
				t.Fatal(err)
			}
			rec := b.must(test.row)
			if got := show(rec); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
			want := clock
			if test.time != 0 {
				want = time.UnixMilli(test.time)
			}
			if !rec.Time.Equal(want) {
				t.Errorf("time: got %s, want %s", rec.Time, want)
			}
		})
	}
}

// Some start with a row in the table: IT-01 to IT-04 get it first, as op r.
func TestSnapshotRow(t *testing.T) {
	t.Parallel()
	b := setup(t, config(t, "table.fields.additional.placement", "by:header"), with(col{name: "by", typ: name}))
	row := []string{"70f52ae3-f671-4bac-ae62-1b9be6e73700", "User", "10711fa5", "UserCreated", "{}", "me"}
	c := b.change(decoder.KindInsert, nil, row)
	for _, test := range []struct {
		record func(*decoder.Change, *sink.Record) (router.Outcome, error)
		by     string
	}{
		{b.plan.SnapshotRow, "me"},
		{b.plan.Record, "∅"}, // Debezium does not read the type name in the stream
		{b.plan.SnapshotRow, "me"},
	} {
		outcome, err := test.record(c, &b.rec)
		if err != nil || outcome != router.Published {
			t.Fatal(outcome, err)
		}
		if got := show(&b.rec); got != "outbox.event.User 10711fa5 {} [id=70f52ae3-f671-4bac-ae62-1b9be6e73700 by="+test.by+"]" {
			t.Errorf("got %s", got)
		}
	}
}
