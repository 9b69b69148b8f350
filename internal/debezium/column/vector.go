package column

import (
	"bytes"
	"math"

	"github.com/walpost/walpost/internal/debezium/connect"
)

// buildVector does vector and halfvec of pgvector.
func (c *codec) buildVector(name string) {
	c.schema = named(connect.Array, nameDoubleVector)
	c.schema.Elem = plain(connect.Float64)
	if name == "halfvec" {
		c.schema.Name, c.schema.Elem = nameFloatVector, plain(connect.Float32)
	}
	c.convert, c.zero = vector, connect.Value{Valid: true, List: []connect.Value{}}
}

func vector(c *codec, s *Scratch, text []byte) (connect.Value, error) {
	text = bytes.TrimSpace(text)
	if len(text) < 2 || text[0] != '[' || text[len(text)-1] != ']' {
		return connect.Value{}, nil // as Debezium, which warns
	}
	text = text[1 : len(text)-1]
	bits := 64
	if c.schema.Elem.Type == connect.Float32 {
		bits = 32
	}
	list := s.list(bytes.Count(text, []byte(",")) + 1)
	for i := range list {
		var number []byte
		number, text, _ = bytes.Cut(text, []byte(","))
		f, ok := parseFloat(bytes.TrimSpace(number), bits)
		if !ok {
			return connect.Value{}, errLost
		}
		list[i] = connect.Value{Valid: true, Float: f}
	}
	return connect.Value{Valid: true, List: list}, nil
}

// buildSparse does sparsevec of pgvector.
func (c *codec) buildSparse() {
	c.schema = named(connect.Struct, nameSparseVector)
	c.schema.Doc = "Sparse double vector"
	c.schema.Fields = []connect.Field{
		{Name: "dimensions", Schema: plain(connect.Int16)},
		{Name: "vector", Schema: &connect.Schema{Type: connect.Map, Key: plain(connect.Int16), Elem: plain(connect.Float64)}},
	}
	// The zero of Debezium is an empty list, which its schema refuses.
	c.convert = sparse
}

// sparse reads {index:number,…}/dimensions. Debezium takes 16 bits for the index,
// and loses the values of larger vectors.
func sparse(_ *codec, s *Scratch, text []byte) (connect.Value, error) {
	body, dimensions, ok := bytes.Cut(bytes.TrimSpace(text), []byte("/"))
	n, isNumber := parseInt(bytes.TrimSpace(dimensions))
	body = bytes.TrimSpace(body)
	if !ok || len(body) < 2 || body[0] != '{' || body[len(body)-1] != '}' {
		return connect.Value{}, nil // as Debezium, which warns
	}
	if !isNumber || n != int64(int16(n)) {
		return connect.Value{}, errLost
	}
	body = bytes.TrimSpace(body[1 : len(body)-1])
	var entries []entry
	for len(body) > 0 {
		var e entry
		var ok bool
		e.key, body, _ = bytes.Cut(body, []byte(","))
		if e.key, e.value, ok = bytes.Cut(e.key, []byte(":")); !ok {
			return connect.Value{}, nil
		}
		index, isNumber := parseInt(bytes.TrimSpace(e.key))
		if !isNumber || index < math.MinInt16 || index > math.MaxInt16 {
			return connect.Value{}, errLost
		}
		e.hash = spread(uint32(int32(index)))
		entries = append(entries, e)
	}
	initial := 1
	for initial < len(entries) {
		initial *= 2
	}
	javaOrder(entries, initial)
	pairs := s.list(2 * len(entries))
	for i, e := range entries {
		index, _ := parseInt(bytes.TrimSpace(e.key)) // was read above
		f, ok := parseFloat(bytes.TrimSpace(e.value), 64)
		if !ok {
			return connect.Value{}, errLost
		}
		pairs[2*i] = connect.Value{Valid: true, Int: index}
		pairs[2*i+1] = connect.Value{Valid: true, Float: f}
	}
	list := s.list(2)
	list[0] = connect.Value{Valid: true, Int: n}
	list[1] = connect.Value{Valid: true, List: pairs}
	return connect.Value{Valid: true, List: list}, nil
}
