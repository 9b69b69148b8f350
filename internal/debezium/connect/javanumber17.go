package connect

import (
	"math"
	"math/big"
	"math/bits"
)

// before19 makes the digits as Java did before version 19: digit generation by
// Steele and White, which stops as soon as the digits so far tell the number from
// its neighbours. Three of its traits are visible and are kept: numbers printed
// with an exponent get at least two digits, and so does the smallest number
// printed without one; the distance to the neighbours is taken as the larger one
// at powers of two; and comparisons differ by the width of the integers that
// suffice for the number.
func (d *decimal) before19(f float64, size int) {
	// f is mantissa × 2^(exponent-52), the mantissa's top bit being bit 52.
	var mantissa uint64
	var exponent, precision int
	if size == 32 {
		b := math.Float32bits(float32(f))
		mantissa, exponent, precision = split(uint64(b&(1<<23-1)), int(b>>23&0xff), 23, 127)
	} else {
		b := math.Float64bits(f)
		mantissa, exponent, precision = split(b&(1<<52-1), int(b>>52&0x7ff), 52, 1023)
	}
	length := 53 - bits.TrailingZeros64(mantissa) // significant bits
	below := max(0, length-exponent-1)            // of them, behind the binary point
	if below == 0 && exponent <= 62 && length < 64 {
		d.integer(mantissa, exponent, precision)
		return
	}
	d.fraction(mantissa, exponent, precision, length, below)
}

// split unpacks a floating point number's fields; precision is how many bits of
// the mantissa its format keeps.
func split(fraction uint64, biased, width, bias int) (mantissa uint64, exponent, precision int) {
	if biased == 0 {
		precision = bits.Len64(fraction)
		shift := width + 1 - precision
		return fraction << (shift + 52 - width), 1 - shift - bias, precision
	}
	return (fraction | 1<<width) << (52 - width), biased - bias, width + 1
}

// integer prints a whole number below 2^63; digits which its format cannot keep
// are rounded away.
func (d *decimal) integer(mantissa uint64, exponent, precision int) {
	value := mantissa
	if exponent >= 52 {
		value <<= exponent - 52
	} else {
		value >>= 52 - exponent
	}
	shift := 0
	if p := exponent - precision - 1; p > 1 {
		power := uint64(1)
		for power <= (uint64(1)<<p)/10 {
			power *= 10
			shift++
		}
		rest := value % power
		value /= power
		if shift > 0 && rest >= power/2 {
			value++
		}
	}
	for value%10 == 0 {
		value /= 10
		shift++
	}
	var reversed [20]byte
	n := 0
	for ; value != 0; value /= 10 {
		reversed[n] = byte('0' + value%10)
		n++
	}
	for i := range n {
		d.buf[i] = reversed[n-1-i]
	}
	d.n, d.point = n, n+shift
}

// fiveBits is how many bits 5^n takes, as that algorithm counts them.
func fiveBits(n int) int {
	switch {
	case n == 0:
		return 0
	case n <= 26:
		return bits.Len64(fivePower(n))
	}
	return 3 * n
}

func fivePower(n int) uint64 {
	p := uint64(1)
	for range n {
		p *= 5
	}
	return p
}

// fraction prints any other number: as the quotient b/s, digit by digit, until
// the remainder is within m of a whole digit.
func (d *decimal) fraction(mantissa uint64, exponent, precision, length, below int) {
	e := estimate(mantissa, exponent)
	five := max(0, -e) // b = mantissa × 5^five × 2^b2, m = 5^five × 2^m2
	s5 := max(0, e)    // s = 5^s5 × 2^s2
	b2 := five + below + exponent
	s2 := s5 + below
	m2 := b2 - precision
	mantissa >>= 53 - length
	b2 -= length - 1
	common := min(b2, s2)
	b2, s2, m2 = b2-common, s2-common, m2-common
	if length == 1 { // a power of two: the neighbour below is nearer
		m2--
	}
	if m2 < 0 {
		b2, s2, m2 = b2-m2, s2-m2, 0
	}
	bBits := length + b2 + fiveBits(five)
	sBits := s2 + 1 + fiveBits(s5+1)
	var low, high bool
	var tie int
	switch {
	case bBits < 32 && sBits < 32:
		low, high, tie = generate(d, e, int32(mantissa)*int32(fivePower(five))<<b2, int32(fivePower(s5))<<s2, int32(fivePower(five))<<m2)
	case bBits < 64 && sBits < 64:
		low, high, tie = generate(d, e, int64(mantissa)*int64(fivePower(five))<<b2, int64(fivePower(s5))<<s2, int64(fivePower(five))<<m2)
	default:
		low, high, tie = d.generateBig(e, power(mantissa, five, b2), power(1, s5, s2), power(1, five, m2))
	}
	if high && (!low || tie > 0 || tie == 0 && d.buf[d.n-1]&1 != 0) {
		d.roundUp()
	}
}

// estimate is the decimal exponent of a number, or one more: a line through its
// logarithm. The conversions keep the compiler from fusing the operations, which
// rounds differently.
func estimate(mantissa uint64, exponent int) int {
	x := math.Float64frombits(1023<<52 | mantissa&(1<<52-1))
	a := float64((x - 1.5) * 0.289529654)
	b := float64(float64(exponent) * 0.301029995663981)
	return int(math.Floor(float64(a+0.176091259) + b))
}

// generate does its arithmetic in T, with T's overflow.
func generate[T int32 | int64](d *decimal, e int, b, s, m T) (low, high bool, tie int) {
	tens := s * 10
	q := b / s
	b = 10 * (b % s)
	m *= 10
	low, high = b < m, b+m > tens
	e = d.first(e, int(q), high)
	if e < -3 || e >= 8 {
		low, high = false, false
	}
	for !low && !high {
		q = b / s
		b = 10 * (b % s)
		m *= 10
		low, high = true, true
		if m > 0 { // else it overflowed, and is greater than both
			low, high = b < m, b+m > tens
		}
		d.push(int(q))
	}
	switch difference := b<<1 - tens; {
	case difference > 0:
		tie = 1
	case difference < 0:
		tie = -1
	}
	return low, high, tie
}

func (d *decimal) generateBig(e int, b, s, m *big.Int) (low, high bool, tie int) {
	ten := big.NewInt(10)
	tens := new(big.Int).Mul(s, ten)
	var q, sum big.Int
	step := func() {
		q.QuoRem(b, s, b)
		b.Mul(b, ten)
		m.Mul(m, ten)
		low = b.Cmp(m) < 0
		high = tens.Cmp(sum.Add(b, m)) <= 0
	}
	step()
	e = d.first(e, int(q.Int64()), high)
	if e < -3 || e >= 8 {
		low, high = false, false
	}
	for !low && !high {
		step()
		d.push(int(q.Int64()))
	}
	return low, high, b.Lsh(b, 1).Cmp(tens)
}

// first takes the first digit, which is dropped when it is a zero: the exponent
// was estimated too high.
func (d *decimal) first(e, digit int, high bool) int {
	if digit == 0 && !high {
		e--
	} else {
		d.push(digit)
	}
	d.point = e + 1
	return e
}

func (d *decimal) push(digit int) {
	d.buf[d.n] = byte('0' + digit)
	d.n++
}

func (d *decimal) roundUp() {
	i := d.n - 1
	for ; i > 0 && d.buf[i] == '9'; i-- {
		d.buf[i] = '0'
	}
	if d.buf[i] == '9' {
		d.buf[i] = '1'
		d.point++
		return
	}
	d.buf[i]++
}

func power(factor uint64, five, two int) *big.Int {
	p := new(big.Int).Exp(big.NewInt(5), big.NewInt(int64(five)), nil)
	p.Mul(p, new(big.Int).SetUint64(factor))
	return p.Lsh(p, uint(two))
}
