package decoder

import (
	"encoding/binary"
	"slices"
)

func (d *Decoder) insert(c *Change, r *reader) {
	rel := d.row(c, r)
	d.marker(r, "N")
	d.newTuple = tuple(r, rel, d.newTuple)
	c.Kind, c.Relation, c.New = KindInsert, rel, d.newTuple
}

// update has the old row before the new one only when the replica identity is
// full ('O') or a column of the key changed ('K').
func (d *Decoder) update(c *Change, r *reader) {
	rel := d.row(c, r)
	if m := d.marker(r, "KON"); m != 'N' {
		d.oldTuple = tuple(r, rel, d.oldTuple)
		c.Old = d.oldTuple
		d.marker(r, "N")
	}
	d.newTuple = tuple(r, rel, d.newTuple)
	c.Kind, c.Relation, c.New = KindUpdate, rel, d.newTuple
}

func (d *Decoder) delete(c *Change, r *reader) {
	rel := d.row(c, r)
	d.marker(r, "KO")
	d.oldTuple = tuple(r, rel, d.oldTuple)
	c.Kind, c.Relation, c.Old = KindDelete, rel, d.oldTuple
}

// truncated has no ordinal: it is not a row, and what it removes was delivered.
func (d *Decoder) truncated(c *Change, r *reader) {
	if !d.open {
		r.fail(0, "outside a transaction")
		return
	}
	count := r.uint32("the number of relations")
	flagsAt := r.off
	flags := r.uint8("the flags")
	if r.ok() && flags&^3 != 0 { // 1 is CASCADE, 2 is RESTART IDENTITY
		r.fail(flagsAt, "unknown flags 0x%02x", flags)
	}
	if !r.need(uint64(count)*4, "the relations") {
		return
	}
	d.truncate = slices.Grow(d.truncate[:0], int(count))
	for range count {
		rel := d.lookup(r)
		if rel == nil {
			return
		}
		d.truncate = append(d.truncate, rel)
	}
	c.Kind, c.Relations = KindTruncate, d.truncate
}

// row reads what every row change starts with.
func (d *Decoder) row(c *Change, r *reader) *Relation {
	if d.next(c, r); !r.ok() {
		return nil
	}
	return d.lookup(r)
}

// marker reads the byte that says which tuple follows.
func (d *Decoder) marker(r *reader, allowed string) byte {
	at := r.off
	m := r.uint8("the tuple's marker")
	if !r.ok() {
		return 0
	}
	for i := range len(allowed) {
		if allowed[i] == m {
			return m
		}
	}
	r.fail(at, "tuple marker 0x%02x, expected one of %q", m, allowed)
	return 0
}

// tuple reads one row into buf. Columns are matched by place, so a row of
// another shape than its relation is refused: its values would get the wrong
// names.
func tuple(r *reader, rel *Relation, buf []Value) []Value {
	at := r.off
	count := int(r.uint16("the number of columns"))
	if !r.ok() {
		return buf[:0]
	}
	if count != len(rel.Columns) {
		r.fail(at, "row with %d columns, but %s.%s has %d", count, rel.Namespace, rel.Name, len(rel.Columns))
		return buf[:0]
	}
	if !r.need(uint64(count), "the columns") {
		return buf[:0]
	}
	buf = slices.Grow(buf[:0], count)[:count]
	// The hot loop: bounds are checked here, by hand, once per value.
	data, off := r.data, r.off
	for i := range buf {
		if off >= len(data) {
			r.fail(off, "message ends before column %q", rel.Columns[i].Name)
			return buf[:0]
		}
		kind := ValueKind(data[off])
		off++
		switch kind {
		case Null, Unchanged:
			buf[i] = Value{Kind: kind}
		case Text, Binary:
			if len(data)-off < 4 {
				r.fail(off, "message ends inside the length of column %q", rel.Columns[i].Name)
				return buf[:0]
			}
			n := uint64(binary.BigEndian.Uint32(data[off:]))
			if n > uint64(len(data)-off-4) {
				r.fail(off, "column %q has %d bytes, but the message only %d more", rel.Columns[i].Name, n, len(data)-off-4)
				return buf[:0]
			}
			off += 4
			end := off + int(n)
			buf[i] = Value{Kind: kind, Data: data[off:end:end]}
			off = end
		default:
			r.fail(off-1, "column %q has unknown form 0x%02x", rel.Columns[i].Name, byte(kind))
			return buf[:0]
		}
	}
	r.off = off
	return buf
}
