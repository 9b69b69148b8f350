package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// profiler is a file that is added to the product's main package when -profile
// is given, by an overlay of the build: the product itself has no such thing.
// The profile begins with the process and is complete after SIGUSR1, when the
// file gets its final name.
const profiler = `package main

import (
	"fmt"
	"os"
	"os/signal"
	"runtime/pprof"
	"syscall"
)

var _ = startProfile()

func startProfile() error {
	path := os.Getenv("WALPOST_BENCH_PROFILE")
	if path == "" {
		return nil
	}
	file, err := os.Create(path + ".new")
	if err == nil {
		err = pprof.StartCPUProfile(file)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "profile:", err)
		os.Exit(1)
	}
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGUSR1)
	go func() {
		<-end
		pprof.StopCPUProfile()
		_ = file.Close()
		_ = os.Rename(path+".new", path)
	}()
	return nil
}
`

// overlay returns the build flags that add the profiler.
func (r *rig) overlay(ctx context.Context) ([]string, error) {
	if r.profiles == "" {
		return nil, nil
	}
	if err := os.MkdirAll(r.profiles, 0o755); err != nil {
		return nil, err
	}
	list, err := goList(ctx, "cmd/walpost")
	if err != nil {
		return nil, err
	}
	source, files := filepath.Join(r.dir.Path, "profiler.go"), filepath.Join(r.dir.Path, "overlay.json")
	if err := os.WriteFile(source, []byte(profiler), 0o600); err != nil {
		return nil, err
	}
	data, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(list, "bench_profiler.go"): source}})
	if err != nil {
		return nil, err
	}
	return []string{"-overlay", files}, os.WriteFile(files, data, 0o600)
}

// finishProfile makes a profiled process write its profile; of others it does
// nothing.
func (w *walpost) finishProfile(ctx context.Context) error {
	if w.profile == "" {
		return nil
	}
	if err := w.Signal(syscall.SIGUSR1); err != nil {
		return err
	}
	return poll(ctx, 20*time.Millisecond, 10*time.Second, "the profile", func() (bool, error) {
		_, err := os.Stat(w.profile)
		return err == nil, w.ended()
	})
}
