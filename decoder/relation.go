package decoder

import "slices"

// minColumn is the shortest description of a column: flags, an empty name with
// its NUL, type and modifier.
const minColumn = 1 + 1 + 4 + 4

// relation keeps a table's description. pgoutput sends it before the first row
// of a table on each connection and after each change of the table, also in the
// middle of a transaction.
func (d *Decoder) relation(c *Change, r *reader) {
	oid := r.uint32("the relation's OID")
	namespace := r.text0("the schema's name")
	name := r.text0("the relation's name")
	identityAt := r.off
	identity := r.uint8("the replica identity")
	count := int(r.uint16("the number of columns"))
	if !r.ok() {
		return
	}
	switch identity {
	case 'd', 'n', 'f', 'i':
	default:
		r.fail(identityAt, "unknown replica identity 0x%02x", identity)
		return
	}
	if !r.need(uint64(count)*minColumn, "the columns") {
		return
	}
	rel := &Relation{OID: oid, Namespace: string(namespace), Name: string(name), Identity: identity}
	if rel.Namespace == "" {
		rel.Namespace = "pg_catalog" // logicalrep_write_namespace leaves it out
	}
	rel.Columns = make([]Column, count)
	for i := range rel.Columns {
		at := r.off
		flags := r.uint8("a column's flags")
		rel.Columns[i] = Column{
			Name:    string(r.text0("a column's name")),
			Key:     flags&1 != 0,
			TypeOID: r.uint32("a column's type"),
			TypeMod: int32(r.uint32("a column's type modifier")),
		}
		if r.ok() && flags > 1 {
			r.fail(at, "unknown column flags 0x%02x", flags)
		}
		if !r.ok() {
			return
		}
	}
	if r.end(); !r.ok() {
		return
	}
	// Partitions published through their root repeat the root's description for
	// each leaf. An equal one keeps its pointer, and with it what was derived.
	if old := d.relations[oid]; old != nil && old.equal(rel) {
		rel = old
	} else {
		d.relations[oid] = rel
	}
	c.Kind, c.Relation = KindRelation, rel
}

func (rel *Relation) equal(o *Relation) bool {
	return rel.OID == o.OID && rel.Namespace == o.Namespace && rel.Name == o.Name &&
		rel.Identity == o.Identity && slices.Equal(rel.Columns, o.Columns)
}

// typ reads the description of a type that is not built in. Values come as
// text, so nothing is kept of it.
func (d *Decoder) typ(c *Change, r *reader) {
	r.uint32("the type's OID")
	r.text0("the schema's name")
	r.text0("the type's name")
	c.Kind = KindType
}

// lookup finds the relation of a change.
func (d *Decoder) lookup(r *reader) *Relation {
	at := r.off
	oid := r.uint32("the relation's OID")
	if !r.ok() {
		return nil
	}
	rel := d.relations[oid]
	if rel == nil {
		r.fail(at, "relation %d was never described", oid)
	}
	return rel
}
