package decoder

import (
	"errors"
	"os"
	"testing"
	"unsafe"

	"github.com/jackc/pglogrepl"
)

// FuzzDecode reads its input as a file of testdata/wal. Whatever it holds, the
// decoder does not panic, its errors are its own, and what it gives lies inside
// the message.
func FuzzDecode(f *testing.F) {
	// One seed per transaction: the fuzzer is slow with long inputs. The files as
	// they are go through TestServers.
	file, err := os.ReadFile("testdata/wal/pg18.bin")
	if err != nil {
		f.Fatal(err)
	}
	var seed []byte
	for _, w := range splitWAL(file) {
		if len(w.data) < 1000 {
			seed = appendWAL(seed, w)
		}
		if w.data[0] == 'C' {
			f.Add(seed)
			seed = nil
		}
	}
	begin, commit := encBegin(0x100, 0, 42), encCommit(0x100, 0x130)
	for _, messages := range [][]msg{
		{begin, twoColumns, encInsert(7, "1", "abc"), encInsert(7, null, toasted), commit},
		{begin, twoColumns, m('U').u32(7).u8('K').tuple("0", null).u8('N').tuple("1", "b"), m('D').u32(7).u8('O').tuple("1", null), commit},
		{begin, twoColumns, m('T').u32(2).u8(3).u32(7).u32(7), commit},
		{begin, m('O').u64(5).str("elsewhere"), m('Y').u32(9).str("public").str("mood"), encMessage(1, 1, "p", "c"), commit},
		{encMessage(0, 1, "p", "c"), m('A').u32(1).u32(2), m('A').u32(1).u32(2).u64(3).u64(4)},
		{m('b'), m('S'), m('Z'), {}},
	} {
		var file []byte
		for i, b := range messages {
			file = appendWAL(file, walMessage{pglogrepl.LSN(0x10 + i), b})
		}
		f.Add(file)
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		d := New()
		var open *Transaction
		var ordinal uint32
		for _, w := range splitWAL(file) {
			c, err := d.Decode(w.lsn, w.data)
			if err != nil {
				var de *DecodeError
				if c != nil || !errors.As(err, &de) || de.Offset < 0 || de.Offset > len(w.data) || de.Text == "" || de.Hint() == "" {
					t.Fatalf("Decode(%q) = %v, %v", w.data, c, err)
				}
				d.Reset()
				open = nil
				continue
			}
			checkChange(t, c, w.data)
			if c.Kind == KindBegin {
				ordinal = 0
			}
			if c.Ordinal != 0 {
				if ordinal++; c.Ordinal != ordinal {
					t.Fatalf("ordinal %d, want %d", c.Ordinal, ordinal)
				}
			}
			if c.Kind == KindCommit && open == nil {
				t.Fatal("commit without begin")
			}
			if open = nil; d.InTransaction() {
				open = &Transaction{}
			}
		}
	})
}

func checkChange(t *testing.T, c *Change, data []byte) {
	t.Helper()
	switch c.Kind {
	case KindInsert, KindUpdate:
		checkTuple(t, c.Relation, c.New, data)
		if c.Old != nil {
			checkTuple(t, c.Relation, c.Old, data)
		}
	case KindDelete:
		checkTuple(t, c.Relation, c.Old, data)
	case KindMessage:
		inside(t, c.Message.Content, data)
		if c.Message.Transactional != (c.Transaction != nil) {
			t.Fatalf("transactional %v, but the transaction is %v", c.Message.Transactional, c.Transaction)
		}
	case KindTruncate:
		for _, rel := range c.Relations {
			if rel == nil {
				t.Fatal("truncate of no relation")
			}
		}
	}
}

func checkTuple(t *testing.T, rel *Relation, tuple []Value, data []byte) {
	t.Helper()
	if rel == nil || len(tuple) != len(rel.Columns) {
		t.Fatalf("tuple %v of relation %v", tuple, rel)
	}
	for _, v := range tuple {
		switch v.Kind {
		case Null, Unchanged:
			if v.Data != nil {
				t.Fatalf("value of kind %q with data", v.Kind)
			}
		case Text, Binary:
			inside(t, v.Data, data)
		default:
			t.Fatalf("value of kind %q", v.Kind)
		}
	}
}

// inside checks that b is a part of data and cannot grow beyond itself.
func inside(t *testing.T, b, data []byte) {
	t.Helper()
	if b == nil || cap(b) != len(b) {
		t.Fatalf("slice with length %d and capacity %d", len(b), cap(b))
	}
	if len(b) == 0 {
		return
	}
	start := uintptr(unsafe.Pointer(unsafe.SliceData(data)))
	at := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	if at < start || at+uintptr(len(b)) > start+uintptr(len(data)) {
		t.Fatal("slice outside the message")
	}
}
