package column

import (
	"encoding/hex"
	"strings"
	"testing"
)

// Java's BigInteger.toByteArray: the fewest bytes with room for the sign.
func TestTwosComplement(t *testing.T) {
	t.Parallel()
	f, zero := strings.Repeat("f", 16), strings.Repeat("0", 16)
	for text, want := range map[string]string{
		"0": "00", "-0.0": "00", "1": "01", "-1": "ff", "127": "7f", "128": "0080", "-128": "80", "-129": "ff7f",
		"255": "00ff", "256": "0100", "-256": "ff00", "32767": "7fff", "32768": "008000", "-32768": "8000", "-32769": "ff7fff",
		"999999999999999999": "0de0b6b3a763ffff", "-999999999999999999": "f21f494c589c0001",
		// 2^63 and 2^71, which an int64 does not hold.
		"9223372036854775807": "7fffffffffffffff", "9223372036854775808": "008000000000000000",
		"-9223372036854775808": "8000000000000000", "-9223372036854775809": "ff7fffffffffffffff",
		"2361183241434822606847": "7f" + f, "2361183241434822606848": "0080" + zero,
		"-2361183241434822606848": "80" + zero, "-2361183241434822606849": "ff7f" + f,
		"-0000000000000000000": "00", "-0000000000000000001": "ff",
	} {
		d, ok := parseDecimal([]byte(text))
		if got := hex.EncodeToString(d.appendUnscaled(nil, 0)); !ok || got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
	for _, text := range []string{"", "-", ".", "1e5", "1.2.3", "NaN", "0x1", " 1"} {
		if d, ok := parseDecimal([]byte(text)); ok {
			t.Errorf("%q: %v, want no number", text, d)
		}
	}
}
