package decoder

import (
	"encoding/binary"

	"github.com/jackc/pglogrepl"
)

// The encoder writes messages as pgoutput does (src/backend/replication/logical/proto.c).

type msg []byte

func m(kind byte) msg { return msg{kind} }

func (b msg) u8(v byte) msg    { return append(b, v) }
func (b msg) u16(v int) msg    { return binary.BigEndian.AppendUint16(b, uint16(v)) }
func (b msg) u32(v int) msg    { return binary.BigEndian.AppendUint32(b, uint32(v)) }
func (b msg) u64(v uint64) msg { return binary.BigEndian.AppendUint64(b, v) }
func (b msg) str(s string) msg { return append(append(b, s...), 0) }
func (b msg) raw(s string) msg { return append(b, s...) }

func encBegin(final pglogrepl.LSN, micros int64, xid int) msg {
	return m('B').u64(uint64(final)).u64(uint64(micros)).u32(xid)
}

func encCommit(commit, end pglogrepl.LSN) msg {
	return m('C').u8(0).u64(uint64(commit)).u64(uint64(end)).u64(0)
}

type col struct {
	name string
	key  byte
	typ  int
}

func encRelation(oid int, schema, name string, cols ...col) msg {
	b := m('R').u32(oid).str(schema).str(name).u8('d').u16(len(cols))
	for _, c := range cols {
		b = b.u8(c.key).str(c.name).u32(c.typ).u32(-1)
	}
	return b
}

// null and toasted are the columns without a value.
const (
	null    = "\x00null"
	toasted = "\x00toasted"
)

func (b msg) tuple(values ...string) msg {
	b = b.u16(len(values))
	for _, v := range values {
		switch v {
		case null:
			b = b.u8('n')
		case toasted:
			b = b.u8('u')
		default:
			b = b.u8('t').u32(len(v)).raw(v)
		}
	}
	return b
}

func encInsert(oid int, values ...string) msg {
	return m('I').u32(oid).u8('N').tuple(values...)
}

func encMessage(flags byte, lsn pglogrepl.LSN, prefix, content string) msg {
	return m('M').u8(flags).u64(uint64(lsn)).str(prefix).u32(len(content)).raw(content)
}
