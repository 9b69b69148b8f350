package router_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/walpost/walpost/decoder"
	"github.com/walpost/walpost/internal/debezium/connect"
	"github.com/walpost/walpost/internal/debezium/router"
	"github.com/walpost/walpost/sink"
)

const (
	messageSource = `{"type":"struct","fields":[{"type":"string","optional":false,"field":"version"},{"type":"string","optional":false,"field":"connector"},{"type":"string","optional":false,"field":"name"},{"type":"int64","optional":false,"field":"ts_ms"},` +
		`{"type":"string","optional":true,"name":"io.debezium.data.Enum","version":1,"parameters":{"allowed":"true,first,first_in_data_collection,last_in_data_collection,last,false,incremental"},"default":"false","field":"snapshot"},` +
		`{"type":"string","optional":false,"field":"db"},{"type":"string","optional":true,"field":"sequence"},{"type":"int64","optional":true,"field":"ts_us"},{"type":"int64","optional":true,"field":"ts_ns"},{"type":"string","optional":false,"field":"schema"},` +
		`{"type":"string","optional":false,"field":"table"},{"type":"int64","optional":true,"field":"txId"},{"type":"int64","optional":true,"field":"lsn"},{"type":"int64","optional":true,"field":"xmin"},{"type":"string","optional":true,"field":"origin"},` +
		`{"type":"int64","optional":true,"field":"origin_lsn"}],"optional":false,"name":"io.debezium.connector.postgresql.Source","version":1,"field":"source"}`
	messageSchema = `{"type":"struct","fields":[{"type":"string","optional":false,"field":"op"},{"type":"int64","optional":true,"field":"ts_ms"},` + messageSource + `,` +
		`{"type":"struct","fields":[{"type":"string","optional":false,"field":"id"},{"type":"int64","optional":false,"field":"total_order"},{"type":"int64","optional":false,"field":"data_collection_order"}],"optional":true,"name":"event.block","version":1,"field":"transaction"},` +
		`{"type":"struct","fields":[{"type":"string","optional":true,"field":"prefix"},{"type":"bytes","optional":true,"field":"content"}],"optional":false,"name":"io.debezium.connector.postgresql.Message","version":1,"field":"message"}],` +
		`"optional":false,"name":"io.debezium.connector.postgresql.MessageValue","version":1}`
)

func message(transaction *decoder.Transaction) *decoder.Change {
	return &decoder.Change{
		Kind: decoder.KindMessage, Transaction: transaction,
		Message: decoder.LogicalMessage{Transactional: transaction != nil, LSN: 139498400, Prefix: "hello", Content: []byte("te?>xt")},
	}
}

func messageValue(sequence, xid, micros, content string) string {
	millis := micros[:13]
	return `{"op":"m","ts_ms":1796183810019,"source":{"version":"3.6.1.Final","connector":"postgresql","name":"app","ts_ms":` + millis + `,"snapshot":"false","db":"golden","sequence":` + strconv.Quote(sequence) +
		`,"ts_us":` + micros + `,"ts_ns":` + micros + `000,"schema":"","table":"","txId":` + xid + `,"lsn":139498400,"xmin":null,"origin":null,"origin_lsn":null},"transaction":null,"message":{"prefix":"hello","content":` + strconv.Quote(content) + `}}`
}

func TestMessage(t *testing.T) {
	t.Parallel()
	plain := []string{"key.converter", connect.ClassJSON, "key.converter.schemas.enable", "false", "value.converter", connect.ClassJSON, "value.converter.schemas.enable", "false"}
	commit := time.UnixMicro(1796183809624099).UTC()
	tx := &decoder.Transaction{XID: 1030, CommitLSN: 139498300, EndLSN: 139498336, CommitTime: commit}
	for _, test := range []struct {
		name   string
		config []string
		before *decoder.Change
		change *decoder.Change
		want   string
	}{
		{"in a transaction", plain, &decoder.Change{Kind: decoder.KindCommit, Transaction: tx}, message(tx),
			`app.message {"prefix":"hello"} ` + messageValue(`["139498336","139498400"]`, "1030", "1796183809624099", "dGU/Pnh0") + " []"},
		{"the first one", plain, &decoder.Change{Kind: decoder.KindBegin, Transaction: tx}, message(tx),
			`app.message {"prefix":"hello"} ` + messageValue(`[null,"139498400"]`, "1030", "1796183809624099", "dGU/Pnh0") + " []"},
		{"alone", plain, &decoder.Change{Kind: decoder.KindCommit, Transaction: tx}, message(nil),
			`app.message {"prefix":"hello"} ` + messageValue(`["139498400","139498400"]`, "null", "1796183809624099", "dGU/Pnh0") + " []"},
		{"alone and the first one", plain, &decoder.Change{Kind: decoder.KindRelation}, message(nil),
			`app.message {"prefix":"hello"} ` + messageValue(`["139498400","139498400"]`, "null", "1796183810019000", "dGU/Pnh0") + " []"},
		{"url-safe", append([]string{"binary.handling.mode", "base64-url-safe"}, plain...), &decoder.Change{}, message(tx),
			`app.message {"prefix":"hello"} ` + messageValue(`[null,"139498400"]`, "1030", "1796183809624099", "dGU_Pnh0") + " []"},
		{"hex", append([]string{"binary.handling.mode", "hex"}, plain...), &decoder.Change{}, message(tx),
			`app.message {"prefix":"hello"} ` + messageValue(`[null,"139498400"]`, "1030", "1796183809624099", "74653f3e7874") + " []"},
		{"with schemas", []string{"key.converter", connect.ClassJSON, "value.converter", connect.ClassJSON}, &decoder.Change{}, message(tx),
			`app.message {"schema":{"type":"struct","fields":[{"type":"string","optional":true,"field":"prefix"}],"optional":false,"name":"io.debezium.connector.postgresql.MessageKey","version":1},"payload":{"prefix":"hello"}} ` +
				`{"schema":` + messageSchema + `,"payload":` + messageValue(`[null,"139498400"]`, "1030", "1796183809624099", "dGU/Pnh0") + "} []"},
		{"as text", nil, &decoder.Change{}, message(tx),
			`app.message Struct{prefix=hello} Struct{op=m,ts_ms=1796183810019,source=Struct{version=3.6.1.Final,connector=postgresql,name=app,ts_ms=1796183809624,db=golden,sequence=[null,"139498400"],ts_us=1796183809624099,ts_ns=1796183809624099000,schema=,table=,txId=1030,lsn=139498400},message=Struct{prefix=hello,content=java.nio.HeapByteBuffer[pos=0 lim=6 cap=6]}} []`},
	} {
		o := config(t, test.config...)
		o.ContextHeaders = 4 // which messages do not have
		r, err := router.New(o)
		if err != nil {
			t.Fatal(err)
		}
		r.Observe(test.before)
		rec := sink.Record{Headers: []sink.Header{{Name: "left over"}}, Partition: 3}
		if made, err := r.Message(test.change, &rec); !made || err != nil {
			t.Fatalf("%s: %t, %v", test.name, made, err)
		}
		if got := show(&rec); got != test.want {
			t.Errorf("%s\n got %s\nwant %s", test.name, got, test.want)
		}
		if rec.Partition != sink.ByKey || !rec.Time.Equal(clock) {
			t.Errorf("%s: partition %d, time %s", test.name, rec.Partition, rec.Time)
		}
	}
}

func TestMessageMayBeOff(t *testing.T) {
	t.Parallel()
	o := config(t)
	o.MessageTopics = false
	r, err := router.New(o)
	if err != nil {
		t.Fatal(err)
	}
	var rec sink.Record
	r.Observe(message(nil))
	if made, err := r.Message(message(nil), &rec); made || err != nil {
		t.Errorf("got %t, %v", made, err)
	}
	// A converter that does not take it makes it poison.
	r, err = router.New(config(t, "value.converter", connect.ClassByteArray))
	if err != nil {
		t.Fatal(err)
	}
	_, err = r.Message(message(nil), &rec)
	if got := reject(t, err); !strings.Contains(got.Error(), `logical message "hello"`) || got.LSN != 139498400 {
		t.Errorf("got %+v", got)
	}
}

func TestHeartbeat(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		config []string
		want   string
	}{
		{[]string{"key.converter", connect.ClassJSON, "key.converter.schemas.enable", "false", "value.converter", connect.ClassJSON, "value.converter.schemas.enable", "false"},
			`__debezium-heartbeat.app {"serverName":"app"} {"ts_ms":1796147715707} []`},
		{[]string{"key.converter", connect.ClassJSON, "value.converter", connect.ClassJSON},
			`__debezium-heartbeat.app {"schema":{"type":"struct","fields":[{"type":"string","optional":false,"field":"serverName"}],"optional":false,"name":"io.debezium.connector.common.ServerNameKey","version":1},"payload":{"serverName":"app"}} ` +
				`{"schema":{"type":"struct","fields":[{"type":"int64","optional":false,"field":"ts_ms"}],"optional":false,"name":"io.debezium.connector.common.Heartbeat","version":1},"payload":{"ts_ms":1796147715707}} []`},
		{nil, "__debezium-heartbeat.app Struct{serverName=app} Struct{ts_ms=1796147715707} []"},
	} {
		o := config(t, test.config...)
		o.ContextHeaders, o.HeartbeatTopic = 4, "__debezium-heartbeat.app"
		r, err := router.New(o)
		if err != nil {
			t.Fatal(err)
		}
		now := time.UnixMilli(1796147715707)
		rec := sink.Record{Headers: []sink.Header{{Name: "left over"}}, Partition: 5}
		if err := r.Heartbeat(now, &rec); err != nil || show(&rec) != test.want || rec.Partition != 0 || !rec.Time.Equal(now) {
			t.Errorf("got %s, partition %d, time %s, %v", show(&rec), rec.Partition, rec.Time, err)
		}
	}
	o := config(t)
	o.Server, o.HeartbeatTopic = true, "__debezium-heartbeat.app"
	r, err := router.New(o)
	if err != nil {
		t.Fatal(err)
	}
	var rec sink.Record
	if err := r.Heartbeat(clock, &rec); err != nil || rec.Partition != sink.ByKey {
		t.Errorf("Debezium Server passes no partition on; got %d, %v", rec.Partition, err)
	}
	if r, err = router.New(config(t)); err != nil {
		t.Fatal(err)
	}
	if err := r.Heartbeat(clock, &sink.Record{}); err == nil {
		t.Error("a heartbeat without a topic")
	}
}
