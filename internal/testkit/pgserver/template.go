package pgserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/walpost/walpost/internal/testkit/fetch"
	"github.com/walpost/walpost/internal/testkit/proc"
)

// initialise makes the data directory: a copy of the template, or an own initdb.
func (s *Server) initialise(ctx context.Context) error {
	if s.opts.FreshIdentity {
		return initdb(ctx, s.user, s.binaries, s.path("data"))
	}
	cache, err := fetch.Open(s.user, s.opts.Log)
	if err != nil {
		return err
	}
	name := fmt.Sprintf("initdb-%s-%s-%s", s.binaries.Version, s.user.Name, fetch.Key([]byte(s.binaries.Dir)))
	template, err := cache.Once(ctx, name, func(dir string) error {
		if err := s.user.Own(dir); err != nil {
			return err
		}
		return initdb(ctx, s.user, s.binaries, filepath.Join(dir, "data"))
	})
	if err != nil {
		return err
	}
	return copyData(filepath.Join(template, "data"), s.path("data"), s.user)
}

func initdb(ctx context.Context, user proc.User, binaries Binaries, dir string) error {
	_, err := proc.Run(ctx, user, proc.Env(), filepath.Join(binaries.Dir, "initdb"),
		"-D", dir, "-U", Superuser, "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
	if err != nil {
		return fmt.Errorf("initialise a data directory: %w", err)
	}
	return nil
}

func copyData(from, to string, user proc.User) error {
	err := filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, name)
		if entry.IsDir() {
			return os.Mkdir(target, 0o700)
		}
		return copyFile(path, target)
	})
	if err != nil {
		return fmt.Errorf("copy the data directory: %w", err)
	}
	return user.Own(to)
}

func copyFile(from, to string) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(target, source)
	return errors.Join(err, target.Close())
}
