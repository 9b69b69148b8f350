package connect

// Type of a Schema, by the names of Kafka Connect.
type Type uint8

// The types of Kafka Connect (org.apache.kafka.connect.data.Schema.Type).
const (
	Int8 Type = iota + 1
	Int16
	Int32
	Int64
	Float32
	Float64
	Boolean
	String
	Bytes
	Array
	Map
	Struct
)

// Schema describes a Value. It does not change after it is made, so its pointer
// can be the key of whatever was derived from it.
type Schema struct {
	Type       Type
	Optional   bool
	Name       string // empty: none
	Version    *int32 // nil: none
	Doc        string
	Parameters []Parameter // in the order in which they are printed
	Default    *Value      // nil: none; takes the place of null
	Fields     []Field     // of a Struct
	Key        *Schema     // of a Map
	Elem       *Schema     // of an Array, and of a Map's values
}

// Parameter of a Schema.
type Parameter struct{ Name, Value string }

// Field of a Struct.
type Field struct {
	Name   string
	Schema *Schema
}

// Value is one datum; which members mean something is for its Schema to say.
// The zero Value is null. It points to memory of whoever made it.
type Value struct {
	Valid bool    // false: null
	Int   int64   // Int8 to Int64; Boolean as 0 or 1
	Float float64 // Float32, Float64
	Bytes []byte  // String as UTF-8, Bytes
	List  []Value // Array; Struct in the order of its fields; Map as key, value, key, value…
	// Text says that Connect holds a string (in Bytes) although the Schema is
	// another: what Debezium leaves behind when it fails to expand a payload
	// half-way. Most converters refuse it.
	Text bool
}

// Converter makes the bytes of a record's key, value or header.
type Converter interface {
	// Convert appends the serialized form of v to dst. A nil schema is Connect's
	// "no schema": v is then a string, or null. null says that Kafka gets a null
	// and nothing was appended. The error says why Debezium's task would fail.
	// It is not safe for concurrent use.
	Convert(dst []byte, s *Schema, v Value) (out []byte, null bool, err error)
}
