package debezium

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"

	"github.com/walpost/walpost/decoder"
	"github.com/walpost/walpost/internal/debezium/connector"
	"github.com/walpost/walpost/internal/debezium/router"
	"github.com/walpost/walpost/internal/event"
	"github.com/walpost/walpost/internal/pg"
	"github.com/walpost/walpost/internal/route"
	"github.com/walpost/walpost/internal/testkit"
	"github.com/walpost/walpost/sink"
	"github.com/walpost/walpost/slot"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// TestTopics: which topics Debezium may have written to, none of them left out.
func TestTopics(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		regex, replacement string
		in, out            []string
	}{
		"default":             {"", "", []string{"outbox.event.order", "outbox.event."}, []string{"outboxXevent.order", "app.outbox.event.order"}},
		"default, written":    {"(?<routedByValue>.*)", "outbox.event.${routedByValue}", []string{"outbox.event.order"}, []string{"order"}},
		"value alone":         {"", "${routedByValue}", []string{"order", "a.b"}, nil},
		"value in the middle": {"", "shop.${routedByValue}.v1", []string{"shop.order.v1"}, []string{"shop.order.v2", "shop.order"}},
		"numbered":            {"(.*)", "shop.$1", []string{"shop.order"}, []string{"order"}},
		"escaped":             {"(.*)", `a\$b.$1`, []string{"a$b.x"}, []string{"a.x"}},
		"constant":            {"", "events", []string{"events"}, []string{"events2"}},
		"part of the value":   {"order-(.*)", "o.$1", []string{"o.x", "x", "anything"}, nil}, // what does not match stays as it is
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := topics(&router.Options{TopicRegex: test.regex, TopicReplace: test.replacement})
			for _, topic := range test.in {
				if !is(topic) {
					t.Errorf("%q is left out", topic)
				}
			}
			for _, topic := range test.out {
				if is(topic) {
					t.Errorf("%q is in", topic)
				}
			}
		})
	}
}

// newTranslator starts one for public.out with String converters.
func newTranslator(t *testing.T, change func(*Options), statements ...string) (*Translator, string, error) {
	t.Helper()
	dsn := testkit.Postgres(t, 18).NewDB(t)
	testkit.Exec(t, dsn, append([]string{
		"create table out (id uuid primary key, aggregatetype text, aggregateid text, type text, payload json)",
		"create table second (id uuid primary key, aggregatetype text, aggregateid text, type text, payload json)",
	}, statements...)...)
	config, err := pg.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	const converter = "org.apache.kafka.connect.storage.StringConverter"
	spec := &connector.Spec{
		PublicationName: "p", PublicationAutocreate: "filtered", TableInclude: []string{`public\.(out|second)`},
		Key: connector.ConverterSpec{Class: converter}, Value: connector.ConverterSpec{Class: converter},
		Header: connector.ConverterSpec{Class: "org.apache.kafka.connect.storage.SimpleHeaderConverter"},
	}
	spec.Router.TopicPrefix = "app"
	opt := Options{Config: config, Application: "walpost/test", Spec: spec, Slot: "none", JavaVersion: 21, Log: zap.NewNop()}
	if change != nil {
		change(&opt)
	}
	tr, err := Start(t.Context(), opt)
	return tr, dsn, err
}

// row is an insert into a table as the stream brings it.
func row(t *testing.T, dsn, table, aggregateType string) *decoder.Change {
	t.Helper()
	def, err := slot.FindTable(t.Context(), testkit.Connect(t, dsn), slot.Table{Schema: "public", Name: table})
	if err != nil {
		t.Fatal(err)
	}
	rel := &decoder.Relation{OID: def.OID, Namespace: "public", Name: table}
	for _, c := range def.Columns {
		rel.Columns = append(rel.Columns, decoder.Column{Name: c.Name, TypeOID: c.TypeOID, TypeMod: c.TypeMod})
	}
	change := &decoder.Change{Kind: decoder.KindInsert, Relation: rel, Transaction: &decoder.Transaction{}, Ordinal: 1}
	for _, v := range []string{"00000000-0000-0000-0000-000000000001", aggregateType, "1", "Created", `{"n":1}`} {
		change.New = append(change.New, decoder.Value{Kind: decoder.Text, Data: []byte(v)})
	}
	return change
}

// TestTranslator: tables are told apart, and a topic that is not allowed makes an
// event that cannot be published.
func TestTranslator(t *testing.T) {
	t.Parallel()
	tr, dsn, err := newTranslator(t, func(o *Options) { o.Allow = []string{"outbox.event.o*"} })
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"public.out", "public.second"}, tr.Tables()); diff != "" {
		t.Error(diff)
	}
	for i, name := range []string{"out", "second"} {
		c := row(t, dsn, name, "order")
		table, ok := tr.Lookup("public", name)
		if !ok || table != i {
			t.Fatalf("%s is table %d", name, table)
		}
		plan, err := tr.Compile(t.Context(), c.Relation, table)
		if err != nil {
			t.Fatal(err)
		}
		var rec sink.Record
		for range 2 { // the second time the topic is known
			publish, err := plan.Record(c, &rec)
			if !publish || err != nil || rec.Topic != "outbox.event.order" || int(rec.Tag.Source) != i {
				t.Errorf("%v, %v: %+v", publish, err, rec)
			}
		}
		if publish, err := plan.(route.SnapshotPlan).SnapshotRecord(c, &rec); !publish || err != nil || int(rec.Tag.Source) != i {
			t.Errorf("snapshot: %v, %v", publish, err)
		}
		other := row(t, dsn, name, "payment")
		other.Relation = c.Relation
		_, err = plan.Record(other, &rec)
		reject, ok := errors.AsType[*event.Reject](err)
		if !ok || reject.EventID != "00000000-0000-0000-0000-000000000001" || reject.Table != "public."+name {
			t.Errorf("got %v", err)
		}
	}
	if _, ok := tr.Lookup("public", "third"); ok {
		t.Error("a table that is not there is known")
	}
}

// TestTranslatorTables: walpost's own list of tables wins, and a pattern that is
// none is refused.
func TestTranslatorTables(t *testing.T) {
	t.Parallel()
	tr, _, err := newTranslator(t, func(o *Options) { o.Tables = []slot.Table{{Schema: "public", Name: "second"}} })
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"public.second"}, tr.Tables()); diff != "" {
		t.Error(diff)
	}
	if _, _, err := newTranslator(t, func(o *Options) { o.Allow = []string{"["} }); err == nil {
		t.Error("a broken pattern was taken")
	}
	if _, _, err := newTranslator(t, func(o *Options) { o.Tables = []slot.Table{{Schema: "public", Name: "gone"}} }); err == nil {
		t.Error("a table that does not exist was taken")
	}
}
