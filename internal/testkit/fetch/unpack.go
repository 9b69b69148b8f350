package fetch

import (
	"archive/tar"
	"archive/zip"
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/ulikunitz/xz"
)

// unpackJar unpacks the one .txz that a jar holds.
func unpackJar(jar, dir string) error {
	archive, err := zip.OpenReader(jar)
	if err != nil {
		return fmt.Errorf("read %s: %w", jar, err)
	}
	defer archive.Close()
	for _, file := range archive.File {
		if !strings.HasSuffix(file.Name, ".txz") {
			continue
		}
		content, err := file.Open()
		if err != nil {
			return fmt.Errorf("read %s: %w", jar, err)
		}
		defer content.Close()
		if err := unpackXZ(content, dir); err != nil {
			return fmt.Errorf("unpack %s of %s: %w", file.Name, jar, err)
		}
		return nil
	}
	return fmt.Errorf("unpack %s: no .txz in it", jar)
}

func unpackXZ(r io.Reader, dir string) error {
	content, err := xz.NewReader(bufio.NewReaderSize(r, 1<<20))
	if err != nil {
		return err
	}
	archive := tar.NewReader(content)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := unpackEntry(archive, header, dir); err != nil {
			return err
		}
	}
}

func unpackEntry(r io.Reader, header *tar.Header, dir string) error {
	name := filepath.FromSlash(strings.TrimSuffix(header.Name, "/"))
	if !filepath.IsLocal(name) {
		return fmt.Errorf("entry %q leaves the folder", header.Name)
	}
	path := filepath.Join(dir, name)
	// Other users have to be able to read and run it.
	mode := os.FileMode(0o644)
	if header.Mode&0o100 != 0 {
		mode = 0o755
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	switch header.Typeflag {
	case tar.TypeDir:
		return os.MkdirAll(path, 0o755)
	case tar.TypeSymlink:
		if !filepath.IsLocal(filepath.Join(filepath.Dir(name), filepath.FromSlash(header.Linkname))) {
			return fmt.Errorf("link %q leaves the folder", header.Name)
		}
		return os.Symlink(header.Linkname, path)
	case tar.TypeLink:
		target := filepath.FromSlash(header.Linkname)
		if !filepath.IsLocal(target) {
			return fmt.Errorf("link %q leaves the folder", header.Name)
		}
		return os.Link(filepath.Join(dir, target), path)
	case tar.TypeReg:
		file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
		if err != nil {
			return err
		}
		_, err = io.Copy(file, r)
		return errors.Join(err, file.Close())
	default:
		return fmt.Errorf("entry %q has the unknown type %q", header.Name, header.Typeflag)
	}
}
