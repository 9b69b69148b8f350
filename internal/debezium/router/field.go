package router

import (
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/walpost/walpost/decoder"
	"github.com/walpost/walpost/internal/debezium/column"
	"github.com/walpost/walpost/internal/debezium/connect"
	"github.com/walpost/walpost/internal/event"
)

// field is a column that the router reads.
type field struct {
	index  int // in the relation
	column *column.Column
	value  connect.Value // of the row at hand
	// placeholder is the text that stands for an unchanged TOASTed value; nil:
	// what Debezium has for the type is not known here.
	placeholder []byte
	warned      bool // that a value was lost
}

// fields finds columns and keeps those that are used.
type fields struct {
	router *Router
	rel    *decoder.Relation
	table  Table
	name   string
	list   []*field
	omits  map[string]string // columns that Debezium leaves out, with their type
}

const oidBytea = 17

// info is what is known about a column as the WAL has it. The catalog is newer.
func (f *fields) info(at int) (column.Info, error) {
	c := &f.rel.Columns[at]
	var info column.Info
	found := false
	for i := range f.table.Columns {
		if f.table.Columns[i].Name == c.Name {
			info, found = f.table.Columns[i], true
		}
	}
	if !found || info.TypeOID != c.TypeOID {
		if c.TypeOID >= firstUserOID {
			return info, &event.Reject{
				Table: f.name, Column: c.Name,
				Text: fmt.Sprintf("the rows have a type (%d) that the column does not have any more, and of which the catalog knows nothing", c.TypeOID),
				Way:  "give the column its type back until these rows are published, or publish them with Debezium",
			}
		}
		// The default is one of the new type.
		info = column.Info{
			NotNull: found && info.NotNull || f.rel.Identity == 'd' && c.Key, Key: info.Key || !found && f.rel.Identity == 'd' && c.Key,
			Type: builtIn(c.TypeOID),
		}
	}
	info.Name, info.TypeOID, info.TypeMod = c.Name, c.TypeOID, c.TypeMod
	return info, nil
}

// get gives the number of a column's field; not ok when rows have none.
func (f *fields) get(name string) (int, bool, error) {
	for i, have := range f.list {
		if have.column.Name == name {
			return i, true, nil
		}
	}
	at := -1
	for i := range f.rel.Columns {
		if f.rel.Columns[i].Name == name {
			at = i
		}
	}
	if at < 0 {
		return 0, false, nil
	}
	info, err := f.info(at)
	if err != nil {
		return 0, false, err
	}
	c, err := column.New(info, f.router.opt.Modes)
	if err != nil {
		return 0, false, &event.Reject{Table: f.name, Column: name, Text: err.Error(), Way: hint(err, "choose another mode for the type, or another column")}
	}
	if c == nil {
		f.omits[name] = info.Type.Name
		return 0, false, nil
	}
	f.list = append(f.list, &field{index: at, column: c, placeholder: placeholder(c.Schema, &info, &f.router.opt)})
	return len(f.list) - 1, true, nil
}

// need is get for a column that must be there.
func (f *fields) need(name, option string) (int, error) {
	at, ok, err := f.get(name)
	if err == nil && !ok {
		err = f.missing(name, option)
	}
	return at, err
}

func (f *fields) missing(name, option string) error {
	if typ, omitted := f.omits[name]; omitted {
		return &event.Reject{
			Table: f.name, Column: name, Text: "Debezium leaves out columns of type " + typ + ", so the router does not find it",
			Way: "choose another column in " + option + ", or set include.unknown.datatypes",
		}
	}
	return &event.Reject{
		Table: f.name, Column: name, Text: "there is no such column",
		Way: "correct " + option + ", or take the table out of table.include.list; the table has " + f.columns(),
	}
}

func (f *fields) columns() string {
	var names []string
	for i := range f.rel.Columns {
		if i == 12 {
			names = append(names, "…")
			break
		}
		names = append(names, f.rel.Columns[i].Name)
	}
	return strings.Join(names, ", ")
}

// placeholder is what Debezium's UnchangedToastedPlaceholder has for text and,
// as bytes, for bytea.
func placeholder(s *connect.Schema, info *column.Info, o *Options) []byte {
	switch {
	case s.Type == connect.String && info.TypeOID != oidBytea:
		return []byte(o.Unavailable)
	case s.Type == connect.Bytes && info.TypeOID == oidBytea:
		return []byte(`\x` + hex.EncodeToString([]byte(o.Unavailable)))
	}
	return nil
}

// firstUserOID is FirstNormalObjectId of access/transam.h: the types below are the
// same everywhere.
const firstUserOID = 16384

// arrays are the built-in types of arrays that a table may well have, with their
// elements (pg_type.dat).
var arrays = map[uint32]uint32{
	1000: 16, 1001: 17, 1003: 19, 1005: 21, 1007: 23, 1009: 25, 1014: 1042, 1015: 1043, 1016: 20, 1021: 700, 1022: 701,
	1028: 26, 1115: 1114, 1182: 1082, 1183: 1083, 1185: 1184, 1231: 1700, 1270: 1266, 2951: 2950, 199: 114, 3807: 3802,
	1041: 869, 651: 650, 1040: 829, 143: 142,
}

// builtIn describes a type by its number alone, which is all that is known of one
// that the catalog does not have for the column any more.
func builtIn(oid uint32) column.TypeInfo {
	t := column.TypeInfo{OID: oid, Schema: "pg_catalog", Name: fmt.Sprintf("type %d", oid), Kind: 'b', TypMod: -1}
	if elem, ok := arrays[oid]; ok {
		e := builtIn(elem)
		t.Elem = &e
	}
	return t
}
