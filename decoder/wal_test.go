package decoder

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pglogrepl"
)

var update = flag.Bool("update", false, "capture testdata/wal from the server of WALPOST_TEST_DSN, and write the golden texts anew")

// walMessage is one message of a file in testdata/wal. The file is a sequence of
// uint32 length | uint64 WALStart | message, all big endian.
type walMessage struct {
	lsn  pglogrepl.LSN
	data []byte
}

func appendWAL(file []byte, w walMessage) []byte {
	file = binary.BigEndian.AppendUint32(file, uint32(len(w.data)))
	file = binary.BigEndian.AppendUint64(file, uint64(w.lsn))
	return append(file, w.data...)
}

// splitWAL is lenient, so that the fuzzer may write files too: the last message
// is as long as there are bytes.
func splitWAL(file []byte) []walMessage {
	var out []walMessage
	for len(file) >= 12 {
		n := uint64(binary.BigEndian.Uint32(file))
		lsn := pglogrepl.LSN(binary.BigEndian.Uint64(file[4:]))
		file = file[12:]
		n = min(n, uint64(len(file)))
		out = append(out, walMessage{lsn, file[:n:n]})
		file = file[n:]
	}
	return out
}

// TestServers replays what PostgreSQL 14 to 18 sent for the statements of
// capture_test.go.
func TestServers(t *testing.T) {
	t.Parallel()
	for major := 14; major <= 18; major++ {
		t.Run(fmt.Sprint(major), func(t *testing.T) {
			t.Parallel()
			base := filepath.Join("testdata", "wal", fmt.Sprintf("pg%d", major))
			file, err := os.ReadFile(base + ".bin")
			if err != nil {
				t.Fatal(err)
			}
			var got bytes.Buffer
			d := New()
			seen := make(map[Kind]int)
			for i, w := range splitWAL(file) {
				c, err := d.Decode(w.lsn, w.data)
				if err != nil {
					t.Fatalf("message %d: %v", i, err)
				}
				seen[c.Kind]++
				render(&got, c)
			}
			for k := KindBegin; k <= KindMessage; k++ {
				if seen[k] == 0 {
					t.Errorf("the capture has no %s", k)
				}
			}
			if d.InTransaction() {
				t.Error("the capture ends inside a transaction")
			}
			if *update {
				if err := os.WriteFile(base+".txt", got.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(base + ".txt")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got.String()); diff != "" {
				t.Errorf("changes differ from %s.txt (-want +got):\n%s", base, diff)
			}
		})
	}
}

// render writes a change as one line for the golden files.
func render(w io.Writer, c *Change) {
	fmt.Fprintf(w, "%s %s", c.LSN, c.Kind)
	if tx := c.Transaction; tx != nil {
		fmt.Fprintf(w, " tx=%d commit=%s", tx.XID, tx.CommitLSN)
		if c.Ordinal != 0 {
			fmt.Fprintf(w, " #%d", c.Ordinal)
		}
		if c.Kind == KindBegin {
			fmt.Fprintf(w, " at %s", tx.CommitTime.Format("2006-01-02T15:04:05.000000Z07:00"))
		}
		if c.Kind == KindCommit {
			fmt.Fprintf(w, " end=%s", tx.EndLSN)
		}
	}
	if rel := c.Relation; rel != nil {
		fmt.Fprintf(w, " %d %s.%s", rel.OID, rel.Namespace, rel.Name)
		if c.Kind == KindRelation {
			fmt.Fprintf(w, " identity=%c", rel.Identity)
			for _, col := range rel.Columns {
				key := ""
				if col.Key {
					key = "*"
				}
				fmt.Fprintf(w, " %s%s:%d/%d", key, col.Name, col.TypeOID, col.TypeMod)
			}
		}
	}
	for _, rel := range c.Relations {
		fmt.Fprintf(w, " %s.%s", rel.Namespace, rel.Name)
	}
	renderTuple(w, " old", c.Relation, c.Old)
	renderTuple(w, " new", c.Relation, c.New)
	if c.Kind == KindMessage {
		m := c.Message
		fmt.Fprintf(w, " transactional=%v lsn=%s prefix=%q content=%s", m.Transactional, m.LSN, m.Prefix, short(m.Content))
	}
	fmt.Fprintln(w)
}

func renderTuple(w io.Writer, name string, rel *Relation, tuple []Value) {
	if tuple == nil {
		return
	}
	fmt.Fprintf(w, "%s(", name)
	for i, v := range tuple {
		if i > 0 {
			fmt.Fprint(w, " ")
		}
		fmt.Fprintf(w, "%s=", rel.Columns[i].Name)
		switch v.Kind {
		case Null:
			fmt.Fprint(w, "null")
		case Unchanged:
			fmt.Fprint(w, "unchanged")
		default:
			fmt.Fprint(w, short(v.Data))
		}
	}
	fmt.Fprint(w, ")")
}

// short quotes a value, or gives the length and a sum of a long one.
func short(b []byte) string {
	if len(b) > 120 {
		return fmt.Sprintf("<%d bytes, sha256 %x>", len(b), sha256.Sum256(b))
	}
	if utf8.Valid(b) {
		return "'" + strings.ReplaceAll(string(b), "\n", `\n`) + "'"
	}
	return fmt.Sprintf("%q", b)
}
