package connect

import (
	"math"
	"strconv"
)

// shortestSince is the first Java version whose Double.toString prints the
// shortest text that reads back as the same number (JDK-4511638).
const shortestSince = 19

// decimal is a positive number 0.d₁d₂d₃… × 10^point.
type decimal struct {
	buf   [32]byte
	n     int
	point int
}

// appendDouble appends what Java's Double.toString prints.
func (w *writer) appendDouble(dst []byte, f float64) []byte {
	return w.appendNumber(dst, f, 64)
}

// appendFloat appends what Java's Float.toString prints.
func (w *writer) appendFloat(dst []byte, f float64) []byte {
	return w.appendNumber(dst, f, 32)
}

func (w *writer) appendNumber(dst []byte, f float64, bits int) []byte {
	switch {
	case math.IsNaN(f):
		return append(dst, "NaN"...)
	case math.IsInf(f, 1):
		return append(dst, "Infinity"...)
	case math.IsInf(f, -1):
		return append(dst, "-Infinity"...)
	}
	if math.Signbit(f) {
		dst, f = append(dst, '-'), -f
	}
	if f == 0 {
		return append(dst, "0.0"...)
	}
	var d decimal
	if w.java >= shortestSince {
		d.shortest(f, bits)
	} else {
		d.before19(f, bits)
	}
	return d.append(dst)
}

// shortest takes the fewest digits, but two at least, that read back as f. Where
// one digit would do, Java takes the two digits nearest to f: 4.9E-324.
func (d *decimal) shortest(f float64, bits int) {
	var text [32]byte
	s := strconv.AppendFloat(text[:0], f, 'e', -1, bits)
	if s[1] == 'e' {
		var two [32]byte
		t := strconv.AppendFloat(two[:0], f, 'e', 1, bits)
		if back, err := strconv.ParseFloat(string(t), bits); err == nil && back == f {
			s = t
		}
	}
	i := 0
	for ; s[i] != 'e'; i++ {
		if s[i] != '.' {
			d.buf[d.n] = s[i]
			d.n++
		}
	}
	exponent, _ := strconv.Atoi(string(s[i+1:]))
	d.point = exponent + 1
	d.even(f, bits)
	for d.n > 1 && d.buf[d.n-1] == '0' {
		d.n--
	}
}

// even takes the other of two texts of the same length that are equally near to
// f, where its last digit is even: Java's choice is that, Go's is not always.
func (d *decimal) even(f float64, bits int) {
	last := d.buf[d.n-1]
	if last&1 == 0 {
		return
	}
	// A tie has exactly one digit more, a 5. Two floating point numbers and a
	// point between two short decimals are never within 10^-40 of each other.
	var text, digits [80]byte
	n := 0
	for _, c := range strconv.AppendFloat(text[:0], f, 'e', d.n+40, 64) {
		if c == 'e' {
			break
		}
		if c != '.' {
			digits[n] = c
			n++
		}
	}
	if digits[d.n] != '5' {
		return
	}
	for _, c := range digits[d.n+1 : n] {
		if c != '0' {
			return
		}
	}
	other := *d
	if digits[d.n-1] == last {
		other.roundUp()
	} else {
		other.buf[d.n-1]--
	}
	if back, err := strconv.ParseFloat(string(other.append(text[:0])), bits); err == nil && back == f {
		*d = other
	}
}

// append writes the digits in Java's form: plain from 10^-3 to 10^7, else d.dE±x,
// always with a digit behind the point.
func (d *decimal) append(dst []byte) []byte {
	digits := d.buf[:d.n]
	switch {
	case d.point > 0 && d.point < 8:
		for i := range max(d.point, d.n) {
			if i == d.point {
				dst = append(dst, '.')
			}
			if i < d.n {
				dst = append(dst, digits[i])
			} else {
				dst = append(dst, '0')
			}
		}
		if d.n <= d.point {
			dst = append(dst, ".0"...)
		}
		return dst
	case d.point <= 0 && d.point > -3:
		dst = append(dst, "0."...)
		for range -d.point {
			dst = append(dst, '0')
		}
		return append(dst, digits...)
	}
	dst = append(dst, digits[0], '.')
	if d.n == 1 {
		dst = append(dst, '0')
	}
	dst = append(dst, digits[1:]...)
	dst = append(dst, 'E')
	return strconv.AppendInt(dst, int64(d.point-1), 10)
}
