package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/walpost/walpost/internal/cli"
	"github.com/walpost/walpost/internal/config"
)

// everything is what `walpost run` needs.
const everything = config.NeedPostgres | config.NeedSink

func newConfigCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Show and check the configuration",
		Args:  noCommand,
		RunE:  showHelp,
	}
	cmd.AddCommand(newConfigPrintCommand(a), newConfigValidateCommand(a), newConfigReferenceCommand(a))
	return cmd
}

func newConfigPrintCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "print [flags]",
		Short: "Print each value and where it came from, secrets masked",
		Example: `  walpost config print
  walpost config print --slot orders -o json
  WALPOST_BROKERS=kafka:9092 walpost config print --config /etc/walpost.yaml`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := a.load(cmd, 0)
			if err != nil {
				return err
			}
			return a.printConfig(cfg)
		},
	}
	addRelayFlags(cmd)
	return cmd
}

func (a *app) printConfig(cfg *config.Config) error {
	settings := cfg.Settings()
	if a.json() {
		return cli.WriteJSON(a.stdout, struct {
			File     string           `json:"file"`
			Settings []config.Setting `json:"settings"`
		}{cfg.File, settings})
	}
	table := cli.NewTable(a.stdout)
	for _, s := range settings {
		table.Row(s.Name, s.Text(), "# "+s.Origin)
	}
	return table.Flush()
}

func newConfigValidateCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "validate [flags]",
		Short: "Check the configuration as walpost run would, without connecting",
		Example: `  walpost config validate
  walpost config validate --config /etc/walpost.yaml`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := a.load(cmd, everything)
			if err != nil {
				return err
			}
			if a.json() {
				return cli.WriteJSON(a.stdout, struct {
					Valid bool   `json:"valid"`
					File  string `json:"file"`
				}{true, cfg.File})
			}
			from := "no file"
			if cfg.File != "" {
				from = cfg.File
			}
			_, err = fmt.Fprintf(a.stdout, "ok: the configuration is valid (%s)\n", from)
			return err
		},
	}
	addRelayFlags(cmd)
	return cmd
}

func newConfigReferenceCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "reference",
		Short: "Print every option with its flag, environment variable and default",
		Args:  noArgs,
		RunE: func(*cobra.Command, []string) error {
			if a.json() {
				return cli.WriteJSON(a.stdout, struct {
					Options []config.Entry `json:"options"`
				}{config.Reference()})
			}
			return a.printReference(config.Reference())
		},
	}
}

func (a *app) printReference(entries []config.Entry) error {
	group := ""
	for _, e := range entries {
		if e.Group != group {
			group = e.Group
			fmt.Fprintf(a.stdout, "## %s\n\n", group)
		}
		fmt.Fprintf(a.stdout, "%s (%s)\n    %s\n    ", e.Name, e.Kind, e.Help)
		if len(e.Values) > 0 {
			fmt.Fprintf(a.stdout, "one of %s\n    ", strings.Join(e.Values, ", "))
		}
		if e.Flag != "" {
			fmt.Fprintf(a.stdout, "%s, ", e.Flag)
		}
		fmt.Fprintf(a.stdout, "%s", e.Env)
		if e.Default != "" {
			fmt.Fprintf(a.stdout, ", default %s", e.Default)
		}
		if _, err := fmt.Fprint(a.stdout, "\n\n"); err != nil {
			return err
		}
	}
	return nil
}
