package decoder

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pglogrepl"
)

const testLSN = pglogrepl.LSN(0x16B3748)

var twoColumns = encRelation(7, "public", "t", col{"id", 1, 23}, col{"v", 0, 25})

// setup returns a decoder that has seen the messages before.
func setup(t *testing.T, before ...msg) *Decoder {
	t.Helper()
	d := New()
	for i, b := range before {
		if _, err := d.Decode(testLSN, b); err != nil {
			t.Fatalf("message %d of the setup: %v", i, err)
		}
	}
	return d
}

func decode(t *testing.T, d *Decoder, b msg) *Change {
	t.Helper()
	c, err := d.Decode(testLSN, b)
	if err != nil {
		t.Fatalf("Decode(%q): %v", b, err)
	}
	return c
}

func text(values ...string) []Value {
	var out []Value
	for _, v := range values {
		switch v {
		case null:
			out = append(out, Value{Kind: Null})
		case toasted:
			out = append(out, Value{Kind: Unchanged})
		default:
			out = append(out, Value{Kind: Text, Data: []byte(v)})
		}
	}
	return out
}

func TestDecodeMessages(t *testing.T) {
	t.Parallel()
	begin := encBegin(0x100, 849_000_000_123_456, 42)
	tx := &Transaction{XID: 42, CommitLSN: 0x100, CommitTime: time.Date(2026, 11, 26, 9, 20, 0, 123456000, time.UTC)}
	ended := *tx
	ended.EndLSN = 0x130
	rel := &Relation{OID: 7, Namespace: "public", Name: "t", Identity: 'd', Columns: []Column{
		{Name: "id", Key: true, TypeOID: 23, TypeMod: -1}, {Name: "v", TypeOID: 25, TypeMod: -1}}}

	tests := []struct {
		name   string
		before []msg
		in     msg
		want   Change
	}{
		{"begin", nil, begin, Change{Kind: KindBegin, Transaction: tx}},
		{"commit", []msg{begin}, encCommit(0x100, 0x130), Change{Kind: KindCommit, Transaction: &ended}},
		{"relation", []msg{begin}, twoColumns, Change{Kind: KindRelation, Transaction: tx, Relation: rel}},
		{"relation outside a transaction", nil, twoColumns, Change{Kind: KindRelation, Relation: rel}},
		{"relation of pg_catalog", nil, encRelation(8, "", "x"),
			Change{Kind: KindRelation, Relation: &Relation{OID: 8, Namespace: "pg_catalog", Name: "x", Identity: 'd', Columns: []Column{}}}},
		{"type", []msg{begin}, m('Y').u32(9).str("public").str("mood"), Change{Kind: KindType, Transaction: tx}},
		{"origin", []msg{begin}, m('O').u64(5).str("elsewhere"), Change{Kind: KindOrigin, Transaction: tx}},
		{"insert", []msg{begin, twoColumns}, encInsert(7, "1", "ä\x01"),
			Change{Kind: KindInsert, Transaction: tx, Ordinal: 1, Relation: rel, New: text("1", "ä\x01")}},
		{"insert of NULL and of an empty text", []msg{begin, twoColumns}, encInsert(7, null, ""),
			Change{Kind: KindInsert, Transaction: tx, Ordinal: 1, Relation: rel, New: []Value{{Kind: Null}, {Kind: Text, Data: []byte{}}}}},
		{"insert of a binary value", []msg{begin, twoColumns}, m('I').u32(7).u8('N').u16(2).raw("n").u8('b').u32(2).raw("\x00\x01"),
			Change{Kind: KindInsert, Transaction: tx, Ordinal: 1, Relation: rel, New: []Value{{Kind: Null}, {Kind: Binary, Data: []byte{0, 1}}}}},
		{"update without an old row", []msg{begin, twoColumns}, m('U').u32(7).u8('N').tuple("1", toasted),
			Change{Kind: KindUpdate, Transaction: tx, Ordinal: 1, Relation: rel, New: text("1", toasted)}},
		{"update with the old key", []msg{begin, twoColumns}, m('U').u32(7).u8('K').tuple("0", null).u8('N').tuple("1", "b"),
			Change{Kind: KindUpdate, Transaction: tx, Ordinal: 1, Relation: rel, Old: text("0", null), New: text("1", "b")}},
		{"update with the old row", []msg{begin, twoColumns}, m('U').u32(7).u8('O').tuple("0", "a").u8('N').tuple("1", "b"),
			Change{Kind: KindUpdate, Transaction: tx, Ordinal: 1, Relation: rel, Old: text("0", "a"), New: text("1", "b")}},
		{"delete by key", []msg{begin, twoColumns}, m('D').u32(7).u8('K').tuple("1", null),
			Change{Kind: KindDelete, Transaction: tx, Ordinal: 1, Relation: rel, Old: text("1", null)}},
		{"delete by row", []msg{begin, twoColumns}, m('D').u32(7).u8('O').tuple("1", "b"),
			Change{Kind: KindDelete, Transaction: tx, Ordinal: 1, Relation: rel, Old: text("1", "b")}},
		{"truncate", []msg{begin, twoColumns}, m('T').u32(2).u8(3).u32(7).u32(7),
			Change{Kind: KindTruncate, Transaction: tx, Relations: []*Relation{rel, rel}}},
		{"transactional message", []msg{begin}, encMessage(1, 0x90, "outbox", "hello"),
			Change{Kind: KindMessage, Transaction: tx, Ordinal: 1,
				Message: LogicalMessage{Transactional: true, LSN: 0x90, Prefix: "outbox", Content: []byte("hello")}}},
		{"message outside a transaction", nil, encMessage(0, 0x90, "", ""),
			Change{Kind: KindMessage, Message: LogicalMessage{LSN: 0x90, Content: []byte{}}}},
		{"message of its own inside a transaction", []msg{begin}, encMessage(0, 0x90, "hb", "x"),
			Change{Kind: KindMessage, Message: LogicalMessage{LSN: 0x90, Prefix: "hb", Content: []byte("x")}}},
		{"stray abort", nil, m('A').u32(41).u32(41), Change{Kind: KindStreamAbort}},
		{"stray abort of version 4", nil, m('A').u32(41).u32(43).u64(0x80).u64(1), Change{Kind: KindStreamAbort}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d := setup(t, tt.before...)
			got := decode(t, d, tt.in)
			tt.want.LSN = testLSN
			if diff := cmp.Diff(tt.want, *got); diff != "" {
				t.Errorf("change differs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDecodeErrors(t *testing.T) {
	t.Parallel()
	begin := encBegin(0x100, 0, 42)
	open := []msg{begin, twoColumns}
	tests := []struct {
		name   string
		before []msg
		in     msg
		want   string // after "decode message 'X' at LSN, "
	}{
		{"empty", nil, nil, "message ends inside the message type: 1 bytes needed, 0 left"},
		{"unknown", nil, m('Z'), "offset 0: unknown message type 0x5a"},
		{"two-phase", nil, m('b'), "offset 0: a two-phase message, which is not part of protocol version 1"},
		{"streaming", nil, m('S'), "offset 0: a streaming message, which is not part of protocol version 1"},
		{"short begin", nil, begin[:12], "offset 9: message ends inside the commit time: 8 bytes needed, 3 left"},
		{"long begin", nil, append(begin[:len(begin):len(begin)], 0), "offset 21: 1 bytes too many"},
		{"begin without LSN", nil, encBegin(0, 0, 1), "offset 1: the final LSN is zero"},
		{"nested begin", []msg{begin}, begin, "offset 0: transaction 42 has not ended (commit LSN 0/100)"},
		{"commit outside", nil, encCommit(0x100, 0x130), "offset 0: outside a transaction"},
		{"commit of another transaction", []msg{begin}, encCommit(0x101, 0x130), "offset 2: commit LSN 0/101, but the transaction began with 0/100"},
		{"commit without end", []msg{begin}, encCommit(0x100, 0x100), "offset 10: end LSN 0/100 is not after commit LSN 0/100"},
		{"commit with flags", []msg{begin}, m('C').u8(1).u64(0x100).u64(0x130).u64(0), "offset 1: unknown flags 0x01"},
		{"short commit", []msg{begin}, encCommit(0x100, 0x130)[:20], "offset 18: message ends inside the commit time: 8 bytes needed, 2 left"},
		{"origin outside", nil, m('O').u64(5).str("x"), "offset 0: outside a transaction"},
		{"origin without end", []msg{begin}, m('O').u64(5).raw("x"), "offset 9: message ends inside the origin's name: no terminating NUL"},
		{"relation without columns", nil, m('R').u32(7).str("a").str("b").u8('d').u16(65535), "offset 12: message ends inside the columns: 655350 bytes needed, 0 left"},
		{"relation of unknown identity", nil, m('R').u32(7).str("a").str("b").u8('?').u16(0), "offset 9: unknown replica identity 0x3f"},
		{"relation with unknown flags", nil, encRelation(7, "a", "b", col{"c", 2, 25}), "offset 12: unknown column flags 0x02"},
		{"relation with bytes behind", nil, append(twoColumns[:len(twoColumns):len(twoColumns)], 'x'), "offset 40: 1 bytes too many"},
		{"short type", nil, m('Y').u32(9).str("public"), "offset 12: message ends inside the type's name: no terminating NUL"},
		{"insert outside", []msg{twoColumns}, encInsert(7, "1", "2"), "offset 0: outside a transaction"},
		{"insert into an unknown relation", []msg{begin}, encInsert(7, "1", "2"), "offset 1: relation 7 was never described"},
		{"insert without marker", open, m('I').u32(7).u8('K').tuple("1", "2"), `offset 5: tuple marker 0x4b, expected one of "N"`},
		{"insert of another shape", open, encInsert(7, "1"), "offset 6: row with 1 columns, but public.t has 2"},
		{"insert that ends before a column", open, m('I').u32(7).u8('N').u16(2).u8('t').u32(1).raw("x"), `offset 14: message ends before column "v"`},
		{"insert that ends in a length", open, m('I').u32(7).u8('N').u16(2).u8('n').u8('t').u16(0), `offset 10: message ends inside the length of column "v"`},
		{"insert that ends in a value", open, m('I').u32(7).u8('N').u16(2).u8('n').u8('t').u32(-1).raw("xy"), `offset 10: column "v" has 4294967295 bytes, but the message only 2 more`},
		{"insert of an unknown form", open, m('I').u32(7).u8('N').u16(2).u8('n').u8('x'), `offset 9: column "v" has unknown form 0x78`},
		{"insert with bytes behind", open, encInsert(7, "1", "2").u8(0), "offset 20: 1 bytes too many"},
		{"update without a new row", open, m('U').u32(7).u8('K').tuple("1", null), "offset 15: message ends inside the tuple's marker: 1 bytes needed, 0 left"},
		{"update with two old rows", open, m('U').u32(7).u8('K').tuple("1", null).u8('O').tuple("1", null), `offset 15: tuple marker 0x4f, expected one of "N"`},
		{"delete of a new row", open, m('D').u32(7).u8('N').tuple("1", null), `offset 5: tuple marker 0x4e, expected one of "KO"`},
		{"truncate outside", []msg{twoColumns}, m('T').u32(1).u8(0).u32(7), "offset 0: outside a transaction"},
		{"truncate of too many", open, m('T').u32(-1).u8(0).u32(7), "offset 6: message ends inside the relations: 17179869180 bytes needed, 4 left"},
		{"truncate of an unknown relation", open, m('T').u32(1).u8(0).u32(8), "offset 6: relation 8 was never described"},
		{"truncate with unknown flags", open, m('T').u32(1).u8(4).u32(7), "offset 5: unknown flags 0x04"},
		{"transactional message outside", nil, encMessage(1, 1, "p", "c"), "offset 0: outside a transaction"},
		{"message with unknown flags", nil, encMessage(2, 1, "p", "c"), "offset 1: unknown flags 0x02"},
		{"message without content", nil, m('M').u8(0).u64(1).str("p").u32(-1), "offset 16: message ends inside the content: 4294967295 bytes needed, 0 left"},
		{"abort inside a transaction", open, m('A').u32(41).u32(41), "offset 0: abort inside a transaction, although streaming is off"},
		{"short abort", nil, m('A').u32(41), "offset 5: message ends inside the subtransaction id: 4 bytes needed, 0 left"},
		{"long abort", nil, m('A').u32(41).u32(41).u8(0), "offset 9: message ends inside the abort LSN: 8 bytes needed, 1 left"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d := setup(t, tt.before...)
			c, err := d.Decode(testLSN, tt.in)
			var de *DecodeError
			if c != nil || !errors.As(err, &de) {
				t.Fatalf("Decode = %v, %v; want a *DecodeError", c, err)
			}
			want := "decode message at 0/16B3748: " + tt.want
			if len(tt.in) > 0 {
				want = fmt.Sprintf("decode message %q at 0/16B3748, %s", tt.in[0], tt.want)
			}
			if err.Error() != want {
				t.Errorf("error is\n%s, want\n%s", err, want)
			}
			if de.Hint() == "" || strings.Contains(de.Hint(), "\n") {
				t.Errorf("hint %q is not one line", de.Hint())
			}
			if _, again := d.Decode(testLSN, begin); again != err {
				t.Errorf("after an error Decode = %v, want the same error", again)
			}
			d.Reset()
			if _, err := d.Decode(testLSN, begin); err != nil {
				t.Errorf("after Reset: %v", err)
			}
		})
	}
}

// Every proper prefix of a message is an error: no field is optional.
func TestDecodeEveryTruncation(t *testing.T) {
	t.Parallel()
	begin := encBegin(0x100, 0, 42)
	for _, in := range []msg{
		twoColumns,
		m('Y').u32(9).str("public").str("mood"),
		m('O').u64(5).str("elsewhere"),
		encInsert(7, "1", "abc"),
		m('U').u32(7).u8('O').tuple("0", "a").u8('N').tuple("1", "b"),
		m('D').u32(7).u8('K').tuple("1", null),
		m('T').u32(2).u8(0).u32(7).u32(7),
		encMessage(1, 0x90, "outbox", "hello"),
		encCommit(0x100, 0x130),
	} {
		for n := range len(in) {
			d := setup(t, begin, twoColumns)
			if c, err := d.Decode(testLSN, in[:n:n]); err == nil {
				t.Errorf("%q cut to %d bytes gives %v, want an error", in[0], n, c.Kind)
			}
		}
		decode(t, setup(t, begin, twoColumns), in)
	}
}

func TestErrorWithoutLSNNamesTheCommit(t *testing.T) {
	t.Parallel()
	d := setup(t, encBegin(0x100, 0, 42))
	_, err := d.Decode(0, m('R'))
	var de *DecodeError
	if !errors.As(err, &de) || de.LSN != 0x100 {
		t.Fatalf("Decode: %v, want an error at the commit LSN 0/100", err)
	}
}

func TestOrdinalCountsRowsAndMessages(t *testing.T) {
	t.Parallel()
	d := New()
	var got []uint32
	for _, in := range []msg{
		encBegin(0x100, 0, 1), twoColumns, encInsert(7, "1", "a"), encMessage(1, 1, "p", "c"), encMessage(0, 1, "p", "c"),
		m('T').u32(1).u8(0).u32(7), m('U').u32(7).u8('N').tuple("1", "b"), m('D').u32(7).u8('K').tuple("1", null), encCommit(0x100, 0x130),
		encBegin(0x200, 0, 2), encInsert(7, "1", "a"),
	} {
		got = append(got, decode(t, d, in).Ordinal)
	}
	want := []uint32{0, 0, 1, 2, 0, 0, 3, 4, 0, 0, 1}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("ordinals (-want +got):\n%s", diff)
	}
}

func TestRelationPointer(t *testing.T) {
	t.Parallel()
	d := New()
	first := decode(t, d, twoColumns).Relation
	if again := decode(t, d, twoColumns).Relation; again != first {
		t.Error("an equal description made a new Relation")
	}
	changed := decode(t, d, encRelation(7, "public", "t", col{"id", 1, 23}, col{"w", 0, 25})).Relation
	if changed == first || first.Columns[1].Name != "v" || changed.Columns[1].Name != "w" {
		t.Errorf("a changed description gave %v, the old one is %v", changed, first)
	}
}

func TestInTransactionAndReset(t *testing.T) {
	t.Parallel()
	d := New()
	step := func(in msg, want bool) {
		t.Helper()
		decode(t, d, in)
		if got := d.InTransaction(); got != want {
			t.Errorf("after %q InTransaction = %v, want %v", in[0], got, want)
		}
	}
	step(twoColumns, false)
	step(encBegin(0x100, 0, 1), true)
	step(encInsert(7, "1", "a"), true)
	step(encCommit(0x100, 0x130), false)
	step(encBegin(0x200, 0, 1), true)
	d.Reset()
	if d.InTransaction() {
		t.Error("InTransaction after Reset")
	}
	step(encBegin(0x200, 0, 1), true)
	if _, err := d.Decode(testLSN, encInsert(7, "1", "a")); err == nil {
		t.Error("the relation survived Reset")
	}
}

func TestServerTime(t *testing.T) {
	t.Parallel()
	for micros, want := range map[int64]string{
		0:                     "2000-01-01T00:00:00Z",
		-1:                    "1999-12-31T23:59:59.999999Z",
		849_000_000_123_456:   "2026-11-26T09:20:00.123456Z",
		-9223372036854775808:  "-290278-12-22T19:59:05.224192Z",
		9_223_372_036_854_775: "2292-04-10T23:47:16.854775Z",
	} {
		got := serverTime(micros).Format("2006-01-02T15:04:05.999999Z07:00")
		if got != want {
			t.Errorf("serverTime(%d) = %s, want %s", micros, got, want)
		}
	}
}

func TestInsertDoesNotAllocate(t *testing.T) {
	d := setup(t, encBegin(0x100, 0, 1), twoColumns)
	ins, upd := encInsert(7, "1", "abc"), m('U').u32(7).u8('O').tuple("0", "a").u8('N').tuple("1", "b")
	other := encMessage(1, 1, "outbox", "x")
	got := testing.AllocsPerRun(100, func() {
		for _, in := range []msg{ins, upd, other} {
			if _, err := d.Decode(testLSN, in); err != nil {
				t.Fatal(err)
			}
		}
	})
	if got != 0 {
		t.Errorf("%v allocations per round, want 0", got)
	}
}

func TestTransactionDoesNotAllocate(t *testing.T) {
	d := New()
	in := []msg{encBegin(0x100, 0, 1), twoColumns, encInsert(7, "1", "abc"), m('T').u32(1).u8(0).u32(7), encCommit(0x100, 0x130)}
	for _, b := range in {
		decode(t, d, b)
	}
	tx := []msg{in[0], in[2], in[3], in[4]}
	got := testing.AllocsPerRun(100, func() {
		for _, b := range tx {
			if _, err := d.Decode(testLSN, b); err != nil {
				t.Fatal(err)
			}
		}
	})
	if got != 0 {
		t.Errorf("%v allocations per transaction, want 0", got)
	}
}

// A count from the wire must not size an allocation.
func TestHugeCountsDoNotAllocate(t *testing.T) {
	t.Parallel()
	for name, in := range map[string]msg{
		"tuple":    m('I').u32(7).u8('N').u16(65535),
		"relation": m('R').u32(8).str("a").str("b").u8('d').u16(65535).raw("12345678"),
		"truncate": m('T').u32(1 << 30).u8(0),
		"message":  m('M').u8(0).u64(1).str("p").u32(1 << 31),
	} {
		d := setup(t, encBegin(0x100, 0, 1), twoColumns)
		if c, err := d.Decode(testLSN, in); err == nil {
			t.Errorf("%s: decoded as %v, want an error", name, c.Kind)
		}
		if cap(d.newTuple)+cap(d.truncate) != 0 || len(d.relations) != 1 {
			t.Errorf("%s: room for %d values and %d relations was made", name, cap(d.newTuple), cap(d.truncate))
		}
	}
}

func BenchmarkInsert(b *testing.B) {
	d := New()
	rel := encRelation(7, "public", "outbox_events", col{"event_id", 1, 2950}, col{"aggregate_type", 0, 25}, col{"aggregate_id", 0, 25},
		col{"event_type", 0, 25}, col{"schema_version", 0, 23}, col{"payload", 0, 3802}, col{"occurred_at", 0, 1184}, col{"created_at", 0, 1184}, col{"tenant", 0, 25})
	in := encInsert(7, "0f0e4b5e-1111-7000-8000-000000000001", "order", "order-1234", "order_created", "1", strings.Repeat("x", 300),
		"2026-12-02 05:14:00.123456+00", "2026-12-02 05:14:00.123456+00", null)
	for _, p := range []msg{encBegin(0x100, 0, 1), rel} {
		if _, err := d.Decode(testLSN, p); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		d.ordinal = 0
		if _, err := d.Decode(testLSN, in); err != nil {
			b.Fatal(err)
		}
	}
}
