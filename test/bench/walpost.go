package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/walpost/walpost/internal/admin"
	"github.com/walpost/walpost/internal/testkit/proc"
)

// walpost is the product's process with its admin port.
type walpost struct {
	*child
	port    *proc.Port
	profile string        // file; empty: none
	before  chan counters // soon after the start
	cancel  context.CancelFunc
}

// startWalpost runs "walpost run" with its defaults from a slot into a topic.
func (r *rig) startWalpost(ctx context.Context, slotName, topicName string) (*walpost, error) {
	return r.startWalpostAt(ctx, r.pg.DSN(database), r.cluster.Addr(), slotName, topicName)
}

func (r *rig) startWalpostAt(ctx context.Context, dsn string, brokers []string, slotName, topicName string, more ...string) (*walpost, error) {
	port, err := proc.ReservePort()
	if err != nil {
		return nil, err
	}
	w := &walpost{port: port, before: make(chan counters, 1)}
	var env []string
	if r.profiles != "" {
		w.profile = filepath.Join(r.profiles, topicName+".pprof")
		if err := os.Remove(w.profile); err != nil && !errors.Is(err, fs.ErrNotExist) {
			port.Release()
			return nil, err
		}
		env = append(env, "WALPOST_BENCH_PROFILE="+w.profile)
	}
	w.child, err = r.startWith(env, r.walpost, append([]string{
		"run", "--dsn", dsn, "--brokers", strings.Join(brokers, ","),
		"--slot", slotName, "--publication", publication, "--topic", topicName,
		"--admin-listen", fmt.Sprintf("127.0.0.1:%d", port.Number), "--log-level", "warn",
	}, more...)...)
	if err != nil {
		port.Release()
		return nil, err
	}
	ctx, w.cancel = context.WithCancel(ctx)
	go func() { // ends with the context at the latest; the channel has room
		defer close(w.before)
		_ = poll(ctx, 2*time.Millisecond, 10*time.Second, "the admin port", func() (bool, error) {
			c, err := w.scrape(ctx)
			if err == nil {
				w.before <- c
			}
			return err == nil, nil
		})
	}()
	return w, nil
}

func (w *walpost) close() {
	w.cancel()
	w.kill()
	for range w.before { // until it is closed
	}
	w.port.Release()
}

// counters are those of the relay's metrics that the bench looks at.
type counters struct {
	mallocs  float64
	requests float64 // produce requests answered
}

// count notes what the relay has done since soon after its start.
func (w *walpost) count(ctx context.Context, d *Drain) error {
	before, ok := <-w.before
	if !ok {
		return errors.New("the relay's metrics could not be read")
	}
	after, err := w.scrape(ctx)
	d.Mallocs, d.Requests = after.mallocs-before.mallocs, after.requests // those before the first look count too
	return err
}

// get asks the admin port.
func (w *walpost) get(ctx context.Context, path string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d%s", w.port.Number, path), nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	return io.ReadAll(response.Body)
}

func (w *walpost) status(ctx context.Context) (s admin.Status, err error) {
	text, err := w.get(ctx, "/status.json")
	if err != nil {
		return s, err
	}
	return s, json.Unmarshal(text, &s)
}

func (w *walpost) scrape(ctx context.Context) (counters, error) {
	text, err := w.get(ctx, "/metrics")
	if err != nil {
		return counters{}, err
	}
	var c counters
	if c.mallocs, err = parseMetric(string(text), "go_memstats_mallocs_total"); err != nil {
		return c, err
	}
	c.requests, err = parseMetric(string(text), "walpost_produce_seconds_count")
	return c, err
}

// parseMetric finds a series of one sample in the text format.
func parseMetric(text, name string) (float64, error) {
	for line := range strings.Lines(text) {
		rest, ok := strings.CutPrefix(strings.TrimSpace(line), name)
		if !ok || rest == "" || rest[0] != '{' && rest[0] != ' ' {
			continue
		}
		return strconv.ParseFloat(rest[strings.LastIndexByte(rest, ' ')+1:], 64)
	}
	return 0, fmt.Errorf("no metric %s", name)
}
