package offsets

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The files in testdata were written by java.io.ObjectOutputStream.
func testdata(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestFile(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		file string
		want Key
		got  *Offset
		err  string
	}{
		"by name":          {"two.dat", Key{"outbox", "app"}, &Offset{Connector: "outbox", LSN: 0x16d7358, Processed: 0x16d7358, Commit: 0x16d71e8}, ""},
		"by prefix alone":  {"two.dat", Key{"renamed", "app"}, &Offset{Connector: "outbox", LSN: 0x16d7358, Processed: 0x16d7358, Commit: 0x16d71e8}, ""},
		"without a name":   {"two.dat", Key{"", "other"}, &Offset{Connector: "other", LSN: 1, Processed: 1}, ""},
		"another prefix":   {"two.dat", Key{"outbox", "apps"}, nil, ""},
		"a shared array":   {"shared.dat", Key{"b", "app"}, &Offset{Connector: "b", Processed: 7}, ""},
		"a deleted one":    {"shared.dat", Key{"gone", "app"}, &Offset{Connector: "gone", Deleted: true}, ""},
		"several":          {"shared.dat", Key{"c", "app"}, nil, `3 connectors with topic.prefix "app" have stored offsets here, and none has the name "c"`},
		"several, no name": {"shared.dat", Key{"", "app"}, nil, `3 connectors with topic.prefix "app" have stored offsets here, and none has the name ""`},
		"nothing stored":   {"none.dat", Key{"outbox", "app"}, nil, ""},
		"a map of text":    {"text.dat", Key{"outbox", "app"}, nil, "tag 0x74 where an array of bytes should begin"},
		"another map":      {"linked.dat", Key{"outbox", "app"}, nil, `class "java.util.LinkedHashMap" is not one of a map of bytes`},
	}
	for name, test := range tests {
		got, err := File(testdata(t, test.file), test.want)
		if !cmp.Equal(got, test.got) {
			t.Errorf("%s: %s", name, cmp.Diff(test.got, got))
		}
		if text := message(err); !strings.Contains(text, test.err) || text != "" && test.err == "" {
			t.Errorf("%s: got error %q, want %q", name, text, test.err)
		}
	}
	if o, err := File(nil, Key{"outbox", "app"}); o != nil || err != nil {
		t.Errorf("an empty file: got %v, %v", o, err)
	}
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// Every file that is cut off is an error, whatever its lengths promise.
func TestFileCutOff(t *testing.T) {
	t.Parallel()
	data := testdata(t, "two.dat")
	for n := 1; n < len(data); n++ {
		if _, err := javaMap(data[:n]); err == nil {
			t.Errorf("%d of %d bytes were enough", n, len(data))
		}
	}
	if _, err := javaMap(append(data[:len(data):len(data)], 0)); err == nil {
		t.Error("a byte too many was not noticed")
	}
	huge := append([]byte(nil), data...)
	copy(huge[0x4d:], "\xff\xff\xff\xff") // the number of entries
	if _, err := javaMap(huge); message(err) != "at byte 81: it ends before its 4294967295 entries" {
		t.Errorf("got %v", err)
	}
}

func TestValue(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		value string
		want  *Offset
		err   string
	}{
		"no commit yet":       {`{"lsn":24023128,"lsn_proc":24023128}`, &Offset{LSN: 24023128, Processed: 24023128}, ""},
		"an envelope":         {`{"schema":null,"payload":{"lsn":5}}`, &Offset{LSN: 5}, ""},
		"text":                {`{"lsn":"5","lsn_commit":null}`, &Offset{LSN: 5}, ""},
		"in a snapshot":       {`{"snapshot":"INITIAL","snapshot_completed":false,"lsn":5}`, &Offset{LSN: 5, Snapshot: true}, ""},
		"in an old snapshot":  {`{"snapshot":true,"last_snapshot_record":false,"lsn":5}`, &Offset{LSN: 5, Snapshot: true}, ""},
		"snapshot, no LSN":    {`{"snapshot":"INITIAL"}`, &Offset{Snapshot: true}, ""},
		"behind a snapshot":   {`{"snapshot":"INITIAL","snapshot_completed":true,"lsn":5}`, &Offset{LSN: 5}, ""},
		"an old one's end":    {`{"snapshot":true,"last_snapshot_record":true,"lsn":5}`, &Offset{LSN: 5}, ""},
		"no snapshot":         {`{"snapshot":"false","lsn":5}`, &Offset{LSN: 5}, ""},
		"null":                {`null`, &Offset{Deleted: true}, ""},
		"another connector's": {`{"pos":4,"file":"mysql-bin.1"}`, nil, "it has no LSN"},
		"no object":           {`[]`, nil, "its value is not a JSON object"},
		"no JSON":             {`{`, nil, "its value is not a JSON object"},
		"no number":           {`{"lsn":{}}`, nil, "lsn is no number"},
		"too large":           {`{"lsn":9223372036854775808}`, nil, "lsn is no number"},
		"negative":            {`{"lsn":-1}`, nil, "lsn is no number"},
		"a fraction":          {`{"lsn":1.5}`, nil, "lsn is no number"},
	}
	for name, test := range tests {
		got, err := Value("", []byte(test.value))
		if !cmp.Equal(got, test.want) {
			t.Errorf("%s: %s", name, cmp.Diff(test.want, got))
		}
		if text := message(err); !strings.Contains(text, test.err) || text != "" && test.err == "" {
			t.Errorf("%s: got error %q, want %q", name, text, test.err)
		}
	}
}

func TestPositions(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		o                  Offset
		flushed, delivered uint64
	}{
		{Offset{LSN: 9, Processed: 9, Commit: 5}, 5, 9},
		{Offset{LSN: 9, Processed: 9}, 9, 9},
		{Offset{Processed: 7, Commit: 12}, 12, 12},
	} {
		if f, d := uint64(test.o.Flushed()), uint64(test.o.Delivered()); f != test.flushed || d != test.delivered {
			t.Errorf("%+v: flushed %d, delivered %d; want %d, %d", test.o, f, d, test.flushed, test.delivered)
		}
	}
}

func TestMatches(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		key  string
		want Key
		name string
		ok   bool
	}{
		{`["outbox",{"server":"app"}]`, Key{"outbox", "app"}, "outbox", true},
		{`{"schema":null,"payload":["outbox",{"server":"app"}]}`, Key{"outbox", "app"}, "outbox", true},
		{`["outbox",{"server":"app"}]`, Key{"", "app"}, "outbox", true},
		{`["outbox",{"server":"app"}]`, Key{"other", "app"}, "outbox", false},
		{`["outbox",{"server":"app"}]`, Key{"outbox", "ap"}, "outbox", false},
		{`["outbox",{"server":7}]`, Key{"outbox", "7"}, "", false},
		{`["outbox"]`, Key{"outbox", ""}, "", false},
		{`[{},{"server":"app"}]`, Key{"", "app"}, "", false},
		{"", Key{"", ""}, "", false},
	} {
		name, ok := test.want.Matches([]byte(test.key))
		if ok != test.ok || ok && name != test.name {
			t.Errorf("%s for %+v: got %q, %v", test.key, test.want, name, ok)
		}
	}
}

func FuzzFile(f *testing.F) {
	for _, name := range []string{"two.dat", "shared.dat", "none.dat", "text.dat", "linked.dat"} {
		data, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		entries, err := javaMap(data)
		if err != nil && entries != nil {
			t.Error("entries with an error")
		}
		size := 0
		for _, e := range entries {
			if len(e.key) > len(data) || len(e.value) > len(data) {
				t.Error("an array larger than the file")
			}
			size += 2
		}
		if size > len(data) {
			t.Errorf("%d entries in %d bytes", len(entries), len(data))
		}
		_, _ = File(data, Key{"outbox", "app"})
	})
}

func FuzzValue(f *testing.F) {
	f.Add([]byte(`["outbox",{"server":"app"}]`), []byte(`{"lsn":24023128,"lsn_proc":24023128}`))
	f.Add([]byte(`{"payload":["a",{"server":""}]}`), []byte(`{"payload":{"snapshot":"INITIAL"}}`))
	f.Fuzz(func(t *testing.T, key, value []byte) {
		if name, ok := (Key{Server: "app"}).Matches(key); ok {
			if _, again := (Key{Connector: name, Server: "app"}).Matches(key); !again {
				t.Errorf("%s does not match by its own name", key)
			}
		}
		if o, err := Value("a", value); err == nil && !o.Deleted && !o.Snapshot && o.Delivered() == 0 {
			t.Errorf("an offset without a position: %+v", o)
		}
	})
}
