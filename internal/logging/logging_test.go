package logging

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
)

func setup(t *testing.T, o Options) (*zap.Logger, *bytes.Buffer) {
	t.Helper()
	var b bytes.Buffer
	o.Writer = &b
	log, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return log, &b
}

// withDetails prints more with %+v than Error says.
type withDetails struct{ error }

func (withDetails) Format(s fmt.State, _ rune) { fmt.Fprint(s, "details") }

func TestJSONLine(t *testing.T) {
	t.Parallel()
	log, b := setup(t, Options{})
	log.With(zap.String(Slot, "orders")).Info("slot confirmed",
		zap.Stringer(LSN, &url.URL{Path: "0/16B3748"}),
		zap.Int32(Partition, 3),
		zap.Duration(Took, 1500*time.Millisecond),
		zap.NamedError(Err, withDetails{errors.New("broker is away")}),
		zap.Strings("topics", []string{"a", "b"}),
	)
	log.Debug("not logged")

	var got map[string]any
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatalf("%v in %s", err, b)
	}
	ts, _ := got["ts"].(string)
	if !regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$`).MatchString(ts) {
		t.Errorf("got ts %q, want UTC with milliseconds", ts)
	}
	delete(got, "ts")
	want := map[string]any{
		"level": "info", "msg": "slot confirmed", "slot": "orders", "lsn": "0/16B3748",
		"partition": 3.0, "took": 1.5, "err": "broker is away", "topics": []any{"a", "b"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("line differs (-want +got):\n%s", diff)
	}
}

func TestConsoleLine(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]Options{"asked for": {Format: Console}, "on a terminal": {Format: Auto, Terminal: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			log, b := setup(t, o)
			log.Warn("broker is away", zap.Duration(Took, time.Second))
			want := regexp.MustCompile(`^\d\d:\d\d:\d\d\.\d{3}  WARN   broker is away  \{"took": "1s"\}\n$`)
			if !want.MatchString(b.String()) {
				t.Errorf("got %q, want %s", b, want)
			}
		})
	}
}

func TestLevels(t *testing.T) {
	t.Parallel()
	tests := map[string]int{"debug": 4, "": 3, "info": 3, "warn": 2, "error": 1}
	for level, want := range tests {
		log, b := setup(t, Options{Level: level, Format: JSON})
		log.Debug("one")
		log.Info("two")
		log.Warn("three")
		log.Error("four")
		if got := strings.Count(b.String(), "\n"); got != want {
			t.Errorf("level %q: got %d lines, want %d", level, got, want)
		}
	}
}

func TestUnknownOptions(t *testing.T) {
	t.Parallel()
	for want, o := range map[string]Options{
		`log level "loud" is not known`: {Level: "loud"},
		`log format "xml" is not known`: {Format: "xml"},
	} {
		if _, err := New(o); err == nil || err.Error() != want {
			t.Errorf("got error %v, want %s", err, want)
		}
	}
}

func TestNowhere(t *testing.T) {
	t.Parallel()
	log, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	log.Error("nobody sees this")
}

// However a secret gets into a line, it does not get out.
func TestLinesAreScrubbed(t *testing.T) {
	t.Parallel()
	const dsn = "postgres://walpost:hunter2@db/shop"
	parsed, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	var nilURL *url.URL
	for _, format := range []string{JSON, Console} {
		log, b := setup(t, Options{Format: format, Level: "debug"})
		log.With(zap.String("early", dsn)).Info("connected to "+dsn,
			zap.String("text", dsn),
			zap.Error(fmt.Errorf("connect: %w", errors.New(dsn))),
			zap.Any("any", errors.New(dsn)),
			zap.Stringer("stringer", opaque{parsed}),
			zap.Stringer("nothing", nilURL),
			zap.Strings("list", []string{dsn, dsn}),
			zap.Reflect("reflected", map[string]string{"password": "x", "dsn": dsn}),
			zap.Errors("errors", []error{errors.New(dsn)}),
			zap.ByteString("bytes", []byte(dsn)),
			zap.Dict("dict", zap.String("dsn", dsn)),
		)
		if got := strings.Count(b.String(), mask); got != 12 || strings.Contains(b.String(), "hunter2") {
			t.Errorf("%s: got %d masks, want 12, and no secret:\n%s", format, got, b)
		}
	}
}

// opaque prints the whole URL, password included.
type opaque struct{ u *url.URL }

func (o opaque) String() string { return o.u.String() }
