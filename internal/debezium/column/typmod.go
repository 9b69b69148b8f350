package column

// unbounded is the length of a type without one.
const unbounded = 1<<31 - 1

// unscaled is the length of numeric without precision.
const unscaled = 131089

// size is what Debezium knows of a column's length and scale: those of the JDBC
// driver, by the type modifier of the column, or of its domain. For arrays they
// are those of the elements.
type size struct{ length, scale int }

func sizeOf(t *TypeInfo, mod int32) size {
	if mod == -1 {
		// A domain's columns have no modifier; the domain does, or its base.
		for mod == -1 && t.Base != nil {
			mod, t = t.TypMod, t.Base
		}
	} else if t.Base != nil {
		t = t.Base
	}
	oid := t.OID
	if t.Elem != nil {
		oid = t.Elem.OID
	}
	s := size{length: unbounded}
	switch oid {
	case oidNumeric:
		s.length = unscaled
		if mod != -1 {
			s.length, s.scale = int((mod-4)>>16), int((mod-4)&0xffff)
		}
	case oidBool, oidChar:
		s.length = 1
	case oidBit:
		s.length = int(mod)
	case oidVarbit:
		if mod != -1 {
			s.length = int(mod)
		}
	case oidTime, oidTimetz, oidTimestamp, oidTimestamptz:
		s.scale = 6
		if mod != -1 {
			s.scale = int(mod)
		}
	}
	return s
}
