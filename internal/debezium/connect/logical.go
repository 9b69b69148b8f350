package connect

import (
	"math/big"
	"strconv"
	"strings"
)

// Names of the logical types whose Java objects are not those of their Type.
const (
	NameDecimal   = "org.apache.kafka.connect.data.Decimal"
	NameDate      = "org.apache.kafka.connect.data.Date"
	NameTime      = "org.apache.kafka.connect.data.Time"
	NameTimestamp = "org.apache.kafka.connect.data.Timestamp"

	scaleParameter = "scale"

	bitsName         = "io.debezium.data.Bits"
	variableScale    = "io.debezium.data.VariableScaleDecimal"
	geometryPackage  = "io.debezium.data.geometry."
	connectNamespace = "org.apache.kafka.connect.data."
)

// Default returns what Connect's generic getter of a struct gives for v: the
// schema's default in place of null.
func Default(s *Schema, v Value) Value {
	if !v.Valid && s != nil && s.Default != nil {
		return *s.Default
	}
	return v
}

// Parameter returns the value of one of the schema's parameters.
func (s *Schema) Parameter(name string) (string, bool) {
	for _, p := range s.Parameters {
		if p.Name == name {
			return p.Value, true
		}
	}
	return "", false
}

// logical tells Connect's own logical types, cheaply for all the others.
func (s *Schema) logical() string {
	if strings.HasPrefix(s.Name, connectNamespace) {
		switch s.Name {
		case NameDecimal, NameDate, NameTime, NameTimestamp:
			return s.Name
		}
	}
	return ""
}

// byteArrays says whether the bytes fields of a struct hold a Java byte array;
// the bytes of a column are a ByteBuffer.
func byteArrays(s *Schema) bool {
	return s.Name == variableScale || strings.HasPrefix(s.Name, geometryPackage)
}

// appendDecimal appends what BigDecimal.toString prints.
func (w *writer) appendDecimal(dst []byte, s *Schema, v Value) ([]byte, error) {
	text, _ := s.Parameter(scaleParameter)
	scale, err := strconv.Atoi(text)
	if err != nil {
		return dst, &Error{Converter: w.name, Problem: "Decimal without a scale", hint: hintDate}
	}
	n := twosComplement(v.Bytes)
	if n.Sign() < 0 {
		dst = append(dst, '-')
		n.Neg(n)
	}
	digits := n.Append(make([]byte, 0, 64), 10)
	exponent := len(digits) - 1 - scale
	switch {
	case scale == 0:
		return append(dst, digits...), nil
	case scale > 0 && exponent >= -6:
		if missing := scale - len(digits); missing >= 0 {
			dst = append(dst, "0."...)
			for range missing {
				dst = append(dst, '0')
			}
			return append(dst, digits...), nil
		}
		dst = append(dst, digits[:len(digits)-scale]...)
		dst = append(dst, '.')
		return append(dst, digits[len(digits)-scale:]...), nil
	}
	dst = append(dst, digits[0])
	if len(digits) > 1 {
		dst = append(dst, '.')
		dst = append(dst, digits[1:]...)
	}
	if exponent != 0 {
		dst = append(dst, 'E')
		if exponent > 0 {
			dst = append(dst, '+')
		}
		dst = strconv.AppendInt(dst, int64(exponent), 10)
	}
	return dst, nil
}

// minimal leaves out the leading bytes that only repeat the sign, as BigInteger
// does.
func minimal(b []byte) []byte {
	for len(b) > 1 && (b[0] == 0 && b[1]&0x80 == 0 || b[0] == 0xff && b[1]&0x80 != 0) {
		b = b[1:]
	}
	return b
}

func twosComplement(b []byte) *big.Int {
	n := new(big.Int).SetBytes(b)
	if len(b) > 0 && b[0]&0x80 != 0 {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
	}
	return n
}
