package main

import (
	"io"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/walpost/walpost/internal/cli"
	"github.com/walpost/walpost/internal/config"
	"github.com/walpost/walpost/internal/debezium/connector"
	"github.com/walpost/walpost/internal/logging"
	"github.com/walpost/walpost/internal/route"
)

// The values of -o.
const (
	outputTable = "table"
	outputJSON  = "json"
)

// app is what the commands share: the outside world, and the global flags.
type app struct {
	stdin    io.Reader
	stdout   io.Writer // results
	stderr   io.Writer // everything else
	environ  []string
	readFile func(path string) ([]byte, error)

	output string // outputTable or outputJSON

	connector *connector.Spec // that load has read; nil: none
}

// load reads the configuration with the command's flags, says the warnings and
// checks what needs no server. Its errors have exit code 2.
func (a *app) load(cmd *cobra.Command, need config.Need) (*config.Config, error) {
	cfg, err := config.Load(config.Sources{
		Flags: cmd.Flags(), Environ: a.environ, ReadFile: a.readFile, Need: need, Foreign: a.foreign,
	})
	if err != nil {
		return nil, err
	}
	if _, err := route.New(route.Options{Topic: cfg.Topic, Allow: cfg.Topics.Allow}); err != nil {
		return nil, &cli.Exit{Code: cli.Usage, Err: err}
	}
	for _, w := range cfg.Warnings {
		cli.PrintWarning(a.stderr, w.Text, w.Way)
	}
	return cfg, nil
}

// logger writes to stderr, in the form that the configuration asks for.
func (a *app) logger(cfg *config.Config) (*zap.Logger, error) {
	return logging.New(logging.Options{
		Writer: a.stderr, Level: cfg.Log.Level, Format: cfg.Log.Format, Terminal: cli.IsTerminal(a.stderr),
	})
}

// json says whether the result is for a program.
func (a *app) json() bool { return a.output == outputJSON }
