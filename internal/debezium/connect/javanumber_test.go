package connect

import (
	"bufio"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// Each line of the vectors is a kind (d double, f float), the bits in hex, and the
// text that a Java of that version prints.
func TestJavaNumbers(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		file string
		java int
	}{
		{"numbers-java17.txt", 17},
		{"numbers-java25.txt", 21},
	} {
		t.Run(test.file, func(t *testing.T) {
			t.Parallel()
			file, err := os.Open(filepath.Join("testdata", test.file))
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			w := writer{java: test.java}
			lines, faults := 0, 0
			for scan := bufio.NewScanner(file); scan.Scan() && faults < 20; lines++ {
				field := strings.Fields(scan.Text())
				if got := number(t, &w, field[0], field[1]); got != field[2] {
					t.Errorf("%s %s: got %s, want %s", field[0], field[1], got, field[2])
					faults++
				}
			}
			if lines < 1000 {
				t.Fatalf("only %d vectors", lines)
			}
		})
	}
}

func number(t *testing.T, w *writer, kind, hex string) string {
	t.Helper()
	b, err := strconv.ParseUint(hex, 16, 64)
	if err != nil {
		t.Fatal(err)
	}
	if kind == "f" {
		return string(w.appendFloat(nil, float64(math.Float32frombits(uint32(b)))))
	}
	return string(w.appendDouble(nil, math.Float64frombits(b)))
}
