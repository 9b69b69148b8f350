package proc

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// User is whom a server runs as: us, or somebody else when we are root.
type User struct {
	Name     string
	UID, GID int
}

// Self returns the user that we run as.
func Self() User { return User{Name: "self", UID: os.Getuid(), GID: os.Getgid()} }

// Unprivileged returns ourselves or, for root, the user postgres or nobody:
// PostgreSQL refuses to run as root.
func Unprivileged() (User, error) {
	if os.Geteuid() != 0 {
		return Self(), nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, errUID := strconv.Atoi(u.Uid)
		gid, errGID := strconv.Atoi(u.Gid)
		if errUID == nil && errGID == nil {
			return User{Name: name, UID: uid, GID: gid}, nil
		}
	}
	return User{}, errors.New("find a user for the server: we are root and there is neither postgres nor nobody")
}

func (u User) other() bool { return u.UID != os.Geteuid() }

// Credential returns what makes a child run as this user, nil for ourselves.
func (u User) Credential() *syscall.Credential {
	if !u.other() {
		return nil
	}
	return &syscall.Credential{Uid: uint32(u.UID), Gid: uint32(u.GID)}
}

// Own gives a file, or a folder with all that is in it, to the user.
func (u User) Own(path string) error {
	if !u.other() {
		return nil
	}
	return filepath.WalkDir(path, func(name string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(name, u.UID, u.GID)
	})
}

// Reaches says why the user cannot read below a folder that belongs to us: each
// folder on the way there has to let everybody pass.
func (u User) Reaches(dir string) error {
	if !u.other() {
		return nil
	}
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return err
	}
	for {
		info, err := os.Stat(dir)
		if err != nil {
			return err
		}
		if info.Mode().Perm()&0o001 == 0 {
			return fmt.Errorf("user %s may not pass %s", u.Name, dir)
		}
		if dir == filepath.Dir(dir) {
			return nil
		}
		dir = filepath.Dir(dir)
	}
}
