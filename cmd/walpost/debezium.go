package main

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/walpost/walpost/internal/cli"
	"github.com/walpost/walpost/internal/config"
	"github.com/walpost/walpost/internal/debezium/connector"
)

func newDebeziumCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "debezium",
		Short: "Explain and convert a Debezium connector's configuration, take its slot over",
		Args:  noCommand,
		RunE:  showHelp,
	}
	cmd.AddCommand(newExplainCommand(a), newConvertCommand(a), newTakeoverCommand(a))
	return cmd
}

// addReadFlags gives a command the options that say how the file is read.
func addReadFlags(cmd *cobra.Command) *cobra.Command {
	config.AddFlags(cmd.Flags(), func(o *config.Option) bool {
		return !config.IsGlobal(o) && strings.HasPrefix(o.Name, "debezium.") && !o.NoFlag
	})
	return cmd
}

func newExplainCommand(a *app) *cobra.Command {
	return addReadFlags(&cobra.Command{
		Use:   "explain FILE [flags]",
		Short: "Say for every key what walpost does with it",
		Long: `explain reads a connector's configuration and says for every key, and for the
defaults that matter, what walpost does with it and what differs from Debezium,
the worst first. FILE is the JSON of Kafka Connect's REST interface, the map in it
alone, a .properties file, or the application.properties of Debezium Server;
--worker names the Connect worker's file, which often holds converters and
brokers. It connects to nothing; a reference such as ${env:NAME} that cannot be
resolved here is no fault.

  refused  walpost does not run with it; each is an error with a hint on stderr
  differs  somebody can notice a difference
  note     worth reading once
  same     as Debezium does it

Exit code 0 means that it runs as it is, 3 that it runs with differences, 2 that
it is refused.`,
		Example: `  walpost debezium explain connector.json
  walpost debezium explain connector.json --worker connect-distributed.properties
  walpost debezium explain application.properties -o json | jq '.keys[] | select(.severity != "same")'`,
		Args: oneFile,
		RunE: func(cmd *cobra.Command, args []string) error { return a.explain(cmd, args[0]) },
	})
}

func newConvertCommand(a *app) *cobra.Command {
	return addReadFlags(&cobra.Command{
		Use:   "convert FILE [flags]",
		Short: "Print the walpost.yaml that does the same",
		Long: `convert prints a configuration of walpost's own that gives the same records as
the connector's file: connection, slot, publication, tables and Kafka become
walpost's options, and the keys that decide about records stay as they are, under
debezium.properties. Secrets are not printed; a comment says where they go.`,
		Example: `  walpost debezium convert connector.json > walpost.yaml
  walpost debezium convert connector.json --worker connect-distributed.properties`,
		Args: oneFile,
		RunE: func(cmd *cobra.Command, args []string) error { return a.convert(cmd, args[0]) },
	})
}

// oneFile is the Args of a command that reads a file.
func oneFile(cmd *cobra.Command, args []string) error {
	if len(args) == 1 && args[0] != "" {
		return nil
	}
	return cli.UsageError(fmt.Sprintf("%s takes one file, got %d arguments", cmd.CommandPath(), len(args)),
		fmt.Sprintf("name the connector's file; see %q", cmd.CommandPath()+" --help"))
}

// readConnector reads the file with the options that say how.
func (a *app) readConnector(cmd *cobra.Command, file string) (*connector.Spec, *connector.Report, config.Debezium, error) {
	var d config.Debezium
	if err := cmd.Flags().Set("debezium", file); err != nil {
		return nil, nil, d, err
	}
	sources := config.Sources{
		Flags: cmd.Flags(), Environ: a.environ, ReadFile: a.readFile,
		Foreign: func(found config.Debezium) ([]config.Value, []config.Warning, error) {
			d = found
			return nil, nil, nil
		},
	}
	_, err := config.Load(sources)
	if err != nil {
		// A walpost.yaml that happens to be here, such as a converted one, must not
		// stand in the way; one that was named must be right.
		sources.ReadFile = func(path string) ([]byte, error) {
			if path == config.DefaultFile {
				return nil, fs.ErrNotExist
			}
			return a.readFile(path)
		}
		if _, again := config.Load(sources); again != nil {
			return nil, nil, d, err
		}
	}
	spec, report, err := connector.Read(connector.Options{
		Config: file, Worker: d.Worker, Version: d.Version,
		NoContextHeaders: !d.ContextHeaders, ReproduceDebugText: d.ReproduceText,
		Lenient: true, ReadFile: a.readFile, Environ: a.environ,
	})
	return spec, report, d, err
}

func (a *app) convert(cmd *cobra.Command, file string) error {
	spec, report, d, err := a.readConnector(cmd, file)
	if err != nil {
		return err
	}
	from := file
	if d.Worker != "" {
		from += " and " + d.Worker
	}
	if err := connector.Convert(a.stdout, spec, from); err != nil {
		return err
	}
	for _, e := range report.Sorted() {
		if e.Severity == connector.SeverityDiffers {
			cli.PrintWarning(a.stderr, e.Key+": "+e.Does+"; "+e.Difference, e.Way)
		}
	}
	return nil
}

// explanation is the result of explain for programs.
type explanation struct {
	File    string            `json:"file"`
	Worker  string            `json:"worker,omitempty"`
	Version string            `json:"version"`
	Result  string            `json:"result"`
	Keys    []connector.Entry `json:"keys"`
}

func (a *app) explain(cmd *cobra.Command, file string) error {
	_, report, d, err := a.readConnector(cmd, file)
	if report == nil {
		return err
	}
	entries := report.Sorted()
	if a.json() {
		result := map[connector.Severity]string{
			connector.SeverityRefused: "refused", connector.SeverityDiffers: "runs with differences",
		}[report.Worst()]
		if result == "" {
			result = "runs as it is"
		}
		if e := cli.WriteJSON(a.stdout, explanation{file, d.Worker, d.Version, result, entries}); e != nil {
			return e
		}
	} else if e := a.printExplanation(file, entries); e != nil {
		return e
	}
	if n := report.Count(connector.SeverityDiffers); err == nil && n > 0 {
		return &cli.Exit{
			Code: cli.Findings, Err: errors.New("it runs, with differences: " + plural(n, "key")),
			Way: "see the lines that begin with differs",
		}
	}
	return err
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// printExplanation writes the table. What is long goes last, and the hint of
// what is refused to stderr.
func (a *app) printExplanation(file string, entries []connector.Entry) error {
	folder := filepath.Dir(file) + string(filepath.Separator)
	table := cli.NewTable(a.stdout)
	table.Row("SEVERITY", "KEY", "VALUE", "FROM", "DECISION", "WHAT WALPOST DOES")
	for _, e := range entries {
		text := e.Does
		if e.Difference != "" {
			text += "; " + e.Difference
		}
		if e.Way != "" && e.Severity == connector.SeverityDiffers {
			text += "; " + e.Way
		}
		value := shorten(e.Value)
		if value == "" {
			value = "-"
		}
		table.Row(string(e.Severity), e.Key, value, strings.TrimPrefix(e.Origin, folder), string(e.Decision), text)
	}
	return table.Flush()
}

// shorten keeps the table readable; -o json has values in full. Of a class the
// name counts, not the package.
func shorten(value string) string {
	const longest = 40
	if runes := []rune(value); len(runes) > longest {
		if i := strings.LastIndexByte(value, '.'); i > 0 && !strings.ContainsAny(value, " ,:/") && len(value)-i < longest {
			return "…" + value[i:]
		}
		return string(runes[:longest-1]) + "…"
	}
	return value
}
