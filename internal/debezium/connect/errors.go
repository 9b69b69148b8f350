package connect

// Error is a value that a converter cannot make bytes of.
type Error struct {
	Converter string // its simple class name
	Problem   string
	// Refused says that Debezium would have published something, which is not
	// the same in two runs; otherwise its task would have failed.
	Refused bool
	hint    string
}

// Error names the converter and the problem.
func (e *Error) Error() string { return e.Converter + ": " + e.Problem }

// Hint says in one line what to do.
func (e *Error) Hint() string { return e.hint }

const (
	hintBytes    = "this converter takes bytea only; set the converter to " + ClassString + " or " + ClassJSON + ", or give a delegate.converter.type"
	hintNull     = "the column is NOT NULL in the schema and the value is null; make the column nullable"
	hintExpand   = "Debezium fails its task on this payload; switch table.expand.json.payload off or change the payload"
	hintDate     = "choose another time.precision.mode, or " + ClassJSON
	hintIdentity = "use " + ClassJSON + ", or a mode that turns the column into text"
	hintDepth    = "nest the payload less deeply, or switch schemas.enable off"
)

// javaName of a type in Connect's messages.
func (t Type) javaName() string {
	names := [...]string{"INT8", "INT16", "INT32", "INT64", "FLOAT32", "FLOAT64", "BOOLEAN", "STRING", "BYTES", "ARRAY", "MAP", "STRUCT"}
	if t >= 1 && int(t) <= len(names) {
		return names[t-1]
	}
	return "UNKNOWN"
}
