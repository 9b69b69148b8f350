package quickstart

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/walpost/walpost/internal/testkit"
)

func TestMain(m *testing.M) {
	dependOnSources()
	testkit.Main(m)
}

// dependOnSources looks at the files that the programs are made of: "go test"
// remembers which files a test looked at, and does not take an old result for new
// code.
func dependOnSources() {
	for _, folder := range []string{"checkpoint", "cmd", "decoder", "docs/examples/go", "internal", "outbox", "sink", "slot"} {
		err := filepath.WalkDir(filepath.Join("..", "..", folder), func(path string, _ fs.DirEntry, err error) error {
			if err == nil {
				_, err = os.Stat(path)
			}
			return err
		})
		if err != nil {
			panic(err)
		}
	}
}

// TestQuickstart follows the page, with the servers that it starts.
func TestQuickstart(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("needs real servers: run without -short")
	}
	follow(t, t.TempDir(), nil)
}

// TestQuickstartOnKafka follows the page from the second terminal on, on a real
// Kafka.
func TestQuickstartOnKafka(t *testing.T) {
	t.Parallel()
	brokers := testkit.Kafka(t).Addr()
	dsn := testkit.Postgres(t, 0).NewDB(t)
	dir := t.TempDir()
	env := fmt.Sprintf("export DATABASE_URL='%s'\nexport KAFKA_BROKERS='%s'\n", dsn, strings.Join(brokers, ","))
	if err := os.WriteFile(filepath.Join(dir, "walpost.env"), []byte(env), 0o600); err != nil {
		t.Fatal(err)
	}
	follow(t, dir, []string{"1"})
	testkit.DeleteTopic(t, brokers, "outbox.event.order")
}

// follow does what the page says, except in some terminals, with dir for /tmp.
func follow(t *testing.T, dir string, without []string) {
	terminals := map[string]*terminal{}
	blocks := page(t)
	for i, b := range blocks {
		if b.kind == "go" || slices.Contains(without, b.terminal) {
			continue
		}
		m := terminals[b.terminal]
		if b.kind == "sh" {
			if m == nil {
				m = openTerminal(t, b.terminal)
				terminals[b.terminal] = m
			}
			b.text = strings.ReplaceAll(b.text, "/tmp/", dir+"/")
			m.run(b)
			// What shows something may go on; what shows nothing ends.
			if shows := i+1 < len(blocks) && blocks[i+1].kind == "text" && blocks[i+1].terminal == b.terminal; !shows {
				m.await("the end of " + b.String())
			}
			continue
		}
		if m == nil {
			t.Fatalf("%s: terminal %s is not open", b, b.terminal)
		}
		m.expect(b)
	}
	for _, name := range []string{"4", "3", "2", "1"} {
		if m := terminals[name]; m != nil {
			m.interrupt()
			m.check()
		} else if !slices.Contains(without, name) {
			t.Errorf("the page does not use terminal %s", name)
		}
	}
}
