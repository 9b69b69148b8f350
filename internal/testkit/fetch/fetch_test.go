package fetch

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ulikunitz/xz"
)

func TestOnceBuildsOnce(t *testing.T) {
	t.Parallel()
	cache := &Cache{Dir: t.TempDir(), Log: t.Logf}
	var builds atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			dir, err := cache.Once(t.Context(), "x", func(dir string) error {
				builds.Add(1)
				return os.WriteFile(filepath.Join(dir, "f"), []byte("done"), 0o600)
			})
			if err != nil {
				t.Error(err)
				return
			}
			if got, err := os.ReadFile(filepath.Join(dir, "f")); string(got) != "done" {
				t.Errorf("content = %q, %v", got, err)
			}
		})
	}
	all.Wait()
	if got := builds.Load(); got != 1 {
		t.Errorf("built %d times, want once", got)
	}
}

func TestOnceKeepsNothingOfAFailure(t *testing.T) {
	t.Parallel()
	cache := &Cache{Dir: t.TempDir(), Log: t.Logf}
	broken := errors.New("broken")
	if _, err := cache.Once(t.Context(), "x", func(string) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("error = %v, want %v", err, broken)
	}
	built := false
	if _, err := cache.Once(t.Context(), "x", func(string) error { built = true; return nil }); err != nil || !built {
		t.Errorf("after a failure: built = %v, error %v, want another attempt", built, err)
	}
}

// jar packs entries the way the artifacts do.
func jar(t *testing.T, entries ...tar.Header) string {
	t.Helper()
	var packed bytes.Buffer
	compressed, err := xz.NewWriter(&packed)
	if err != nil {
		t.Fatal(err)
	}
	archive := tar.NewWriter(compressed)
	for _, header := range entries {
		content := []byte(nil)
		if header.Typeflag == tar.TypeReg {
			content = []byte("content of " + header.Name)
			header.Size = int64(len(content))
		}
		if err := archive.WriteHeader(&header); err != nil {
			t.Fatal(err)
		}
		if _, err := archive.Write(content); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(archive.Close(), compressed.Close()); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "a.jar")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	out := zip.NewWriter(file)
	entry, err := out.Create("postgres.txz")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := entry.Write(packed.Bytes()); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(out.Close(), file.Close()); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestUnpackJar(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	err := unpackJar(jar(t,
		tar.Header{Name: "bin/", Typeflag: tar.TypeDir, Mode: 0o700},
		tar.Header{Name: "bin/postgres", Typeflag: tar.TypeReg, Mode: 0o700},
		tar.Header{Name: "lib/libx.so.1", Typeflag: tar.TypeReg, Mode: 0o600},
		tar.Header{Name: "lib/libx.so", Typeflag: tar.TypeSymlink, Linkname: "libx.so.1"},
	), dir)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]os.FileMode{"bin/postgres": 0o755, "lib/libx.so": 0o644} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != want {
			t.Errorf("mode of %s = %v, want %v", name, got, want)
		}
	}
}

func TestUnpackStaysInTheFolder(t *testing.T) {
	t.Parallel()
	for _, header := range []tar.Header{
		{Name: "../x", Typeflag: tar.TypeReg},
		{Name: "/x", Typeflag: tar.TypeReg},
		{Name: "a/x", Typeflag: tar.TypeSymlink, Linkname: "../../x"},
		{Name: "a/x", Typeflag: tar.TypeLink, Linkname: "../x"},
	} {
		err := unpackJar(jar(t, header), t.TempDir())
		if err == nil || !strings.Contains(err.Error(), "leaves the folder") {
			t.Errorf("%s -> %q: error = %v, want a refusal", header.Name, header.Linkname, err)
		}
	}
}
