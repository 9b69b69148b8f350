package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
)

type result struct {
	code           int
	stdout, stderr string
}

// execute runs the program without a process.
func execute(t *testing.T, environ []string, args ...string) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code := run(t.Context(), args, environ, strings.NewReader(""), &stdout, &stderr)
	return result{code, stdout.String(), stderr.String()}
}

func TestUsageErrors(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		args []string
		want string
	}{
		"unknown command":     {[]string{"verson"}, "error: unknown command \"walpost verson\"\nhint: did you mean \"walpost version\"?\n"},
		"unknown far":         {[]string{"publish"}, "error: unknown command \"walpost publish\"\nhint: see \"walpost --help\"\n"},
		"unknown subcommand":  {[]string{"config", "pint"}, "error: unknown command \"walpost config pint\"\nhint: did you mean \"walpost config print\"?\n"},
		"unknown flag":        {[]string{"config", "print", "--slto=x"}, "error: unknown flag: --slto\nhint: did you mean --slot?\n"},
		"unknown flag, far":   {[]string{"version", "--zookeeper=x"}, "error: unknown flag: --zookeeper\nhint: see \"walpost version --help\"\n"},
		"unknown short flag":  {[]string{"version", "-x"}, "error: unknown shorthand flag: 'x' in -x\nhint: see \"walpost version --help\"\n"},
		"flag without value":  {[]string{"config", "print", "--slot"}, "error: flag needs an argument: --slot\nhint: see \"walpost config print --help\"\n"},
		"argument":            {[]string{"version", "now"}, "error: walpost version takes no argument, got \"now\"\nhint: options begin with --; see \"walpost version --help\"\n"},
		"argument, secret":    {[]string{"config", "validate", "postgres://u:hunter2@h/d"}, "error: walpost config validate takes no argument, got \"postgres://u:********@h/d\"\nhint: options begin with --; see \"walpost config validate --help\"\n"},
		"command, secret":     {[]string{"postgres://u:hunter2@h/d"}, "error: unknown command \"walpost postgres://u:********@h/d\"\nhint: see \"walpost --help\"\n"},
		"short flag, secret":  {[]string{"-postgres://u:hunter2@h/d"}, "error: unknown shorthand flag: 'p' in -postgres://u:********@h/d\nhint: see \"walpost --help\"\n"},
		"output":              {[]string{"version", "-o", "xml"}, "error: invalid argument \"xml\" for \"-o, --output\" flag: want table or json\nhint: see \"walpost version --help\"\n"},
		"help of nothing":     {[]string{"help", "nosuch"}, "error: no help for \"nosuch\"\nhint: see \"walpost --help\" for the commands\n"},
		"topic template":      {[]string{"config", "print", "--topic", "<kind>"}, "error: topic template \"<kind>\": unknown placeholder \"<kind>\"\nhint: placeholders are <aggregate_type>, <event_type>, <table> and <header:NAME>\n"},
		"everything at once":  {[]string{"config", "validate", "--slot=A"}, "error: postgres.dsn: no PostgreSQL server is named\nhint: set --dsn-file, WALPOST_DSN or --dsn; or libpq's PGHOST or PGSERVICE\nerror: --slot: \"A\" is not a slot name\nhint: use a-z, 0-9 and _, at most 63 of them\nerror: kafka.brokers: at least one broker is required\nhint: set --brokers or WALPOST_BROKERS to host:port\n"},
		"broken DSN":          {[]string{"config", "validate", "--brokers=k", "--dsn=postgres://u:hunter2@h:x/d"}, "error: --dsn: the DSN cannot be read: the port is not a number\nhint: write it as \"postgres://user@host:5432/database?sslmode=verify-full\" or \"host=… dbname=… user=…\"; in a URL, escape : / ? # @ of a password as %3A %2F %3F %23 %40\n"},
		"configuration file":  {[]string{"config", "print", "--config=no-such-file"}, "error: --config: open no-such-file: no such file or directory\nhint: name a file that exists and can be read\n"},
		"configuration error": {[]string{"config", "print", "--config=testdata/bad.yaml"}, "error: testdata/bad.yaml:2: unknown key \"kafka.broker\"\nhint: did you mean \"kafka.brokers\"?\n"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := execute(t, nil, test.args...)
			if diff := cmp.Diff(result{2, "", test.want}, got, cmp.AllowUnexported(result{})); diff != "" {
				t.Errorf("result differs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestConfigValidate(t *testing.T) {
	t.Parallel()
	env := []string{"WALPOST_DSN=postgres://u:hunter2@h/d", "WALPOST_BROKER=typo", "WALPOST_BROKERS=kafka"}
	got := execute(t, env, "config", "validate")
	want := result{
		0, "ok: the configuration is valid (no file)\n",
		"warning: environment variable WALPOST_BROKER is not used\nhint: did you mean WALPOST_BROKERS?\n",
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(result{})); diff != "" {
		t.Errorf("result differs (-want +got):\n%s", diff)
	}
	got = execute(t, env, "config", "validate", "-o", "json", "--config=testdata/good.yaml")
	if got.code != 0 || got.stdout != "{\n  \"valid\": true,\n  \"file\": \"testdata/good.yaml\"\n}\n" {
		t.Errorf("got %+v", got)
	}
}

func TestConfigPrint(t *testing.T) {
	t.Parallel()
	env := []string{"WALPOST_DSN=postgres://u:hunter2@h/d"}
	got := execute(t, env, "config", "print", "--config=testdata/good.yaml", "--topics-create")
	if got.code != 0 || got.stderr != "" || strings.Contains(got.stdout, "hunter2") {
		t.Fatalf("got %+v", got)
	}
	for _, want := range []string{
		`postgres.dsn                    ********                       # env WALPOST_DSN`,
		`postgres.slot                   orders                         # testdata/good.yaml:2`,
		`topics.create                   true                           # flag --topics-create`,
		`topics.partitions               -1                             # default`,
	} {
		if !strings.Contains(got.stdout, want+"\n") {
			t.Errorf("no line %q in\n%s", want, got.stdout)
		}
	}

	got = execute(t, env, "config", "print", "--config=testdata/good.yaml", "-o", "json")
	var decoded struct {
		File     string
		Settings []struct {
			Name, Origin string
			Value        any
			Secret       bool
		}
	}
	if err := json.Unmarshal([]byte(got.stdout), &decoded); err != nil {
		t.Fatal(err)
	}
	if first := decoded.Settings[0]; first.Name != "postgres.dsn" || first.Value != "********" || !first.Secret || decoded.File != "testdata/good.yaml" {
		t.Errorf("got %+v of %s", first, decoded.File)
	}
}

func TestConfigReference(t *testing.T) {
	t.Parallel()
	got := execute(t, nil, "config", "reference")
	want := `kafka.compression (text)
    compression of record batches
    one of none, gzip, snappy, lz4, zstd
    --kafka-compression, WALPOST_KAFKA_COMPRESSION, default none
`
	if got.code != 0 || !strings.Contains(got.stdout, want) {
		t.Errorf("got %+v, want in it\n%s", got, want)
	}
}

func TestHelpGoesToStdout(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{}, {"--help"}, {"help"}, {"config"}, {"help", "config", "print"}, {"config", "print", "-h"}} {
		got := execute(t, nil, args...)
		if got.code != 0 || got.stderr != "" || !strings.Contains(got.stdout, "Usage:\n  walpost") {
			t.Errorf("%v: got %+v", args, got)
		}
	}
}

// Each command says what it is for, and takes no more than it knows of.
func TestCommandsAreWellFormed(t *testing.T) {
	t.Parallel()
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		if c.Short == "" || strings.HasSuffix(c.Short, ".") {
			t.Errorf("%s: short help %q", c.CommandPath(), c.Short)
		}
		if c.Args == nil && c.Name() != "help" {
			t.Errorf("%s: no rule for arguments", c.CommandPath())
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(newRootCommand(&app{}))
}

func TestVersion(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		info              *debug.BuildInfo
		version, revision string
		want              string
	}{
		"nothing known": {nil, "", "", "walpost devel,  "},
		"installed": {
			&debug.BuildInfo{GoVersion: "go1.26.0", Main: debug.Module{Version: "v1.2.3"}}, "", "", "walpost v1.2.3, go1.26.0 ",
		},
		"built from a tree": {
			&debug.BuildInfo{GoVersion: "go1.26.0", Main: debug.Module{Version: "(devel)"}, Settings: []debug.BuildSetting{
				{Key: "vcs.revision", Value: "abc"}, {Key: "vcs.modified", Value: "true"}, {Key: "GOOS", Value: "linux"}, {Key: "GOARCH", Value: "arm64"},
			}}, "", "", "walpost devel, revision abc with changes, go1.26.0 linux/arm64",
		},
		"linker": {
			&debug.BuildInfo{GoVersion: "go1.26.0", Main: debug.Module{Version: "v0.0.0"}}, "v1.0.0", "def", "walpost v1.0.0, revision def, go1.26.0 ",
		},
	}
	for name, test := range tests {
		if got := newVersionInfo(test.info, test.version, test.revision).String(); got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
	got := execute(t, nil, "version", "-o", "json")
	var decoded map[string]any
	if err := json.Unmarshal([]byte(got.stdout), &decoded); err != nil || got.code != 0 {
		t.Fatalf("%v, %+v", err, got)
	}
	for _, key := range []string{"version", "revision", "modified", "go", "platform"} {
		if _, ok := decoded[key]; !ok {
			t.Errorf("no %q in %s", key, got.stdout)
		}
	}
}

func TestUnreadableFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "walpost.yaml")
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	got := execute(t, []string{"WALPOST_CONFIG=" + path}, "config", "print")
	want := result{2, "", "error: WALPOST_CONFIG: read " + path + ": is a directory\nhint: name a file that exists and can be read\n"}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(result{})); diff != "" {
		t.Errorf("result differs (-want +got):\n%s", diff)
	}
}
