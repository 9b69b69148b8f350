package main

import (
	"errors"
	"fmt"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/walpost/walpost/internal/cli"
	"github.com/walpost/walpost/internal/config"
	"github.com/walpost/walpost/internal/logging"
)

// commands are the subcommands, in the order of the help.
func commands(a *app) []*cobra.Command {
	return []*cobra.Command{
		newRunCommand(a),
		newInitCommand(a),
		newStatusCommand(a),
		newConfigCommand(a),
		newDebeziumCommand(a),
		newDrillCommand(a),
		newVersionCommand(a),
	}
}

func newRootCommand(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:   "walpost",
		Short: "Post a PostgreSQL outbox to Kafka, straight from the WAL",
		Long: `walpost reads the rows that an application commits to its outbox table from
PostgreSQL's write-ahead log and posts each one to Kafka: every event at least
once, in the normal set-up exactly once, in commit order per aggregate.

Options come from flags, the environment (WALPOST_…) or ./walpost.yaml, in this
order; "walpost config print" shows each value and where it came from. Results
go to stdout, everything else to stderr.

Exit codes: 0 ok, 1 failure at run time, 2 usage or configuration, 3 a check
found problems, 4 needs a decision, 5 another instance took over.`,
		Args:              noCommand,
		RunE:              showHelp,
		SilenceErrors:     true, // run prints them, in two lines
		SilenceUsage:      true,
		DisableAutoGenTag: true,
	}
	root.SetIn(a.stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	root.SetFlagErrorFunc(flagError)
	root.SetUsageFunc(usage)
	root.CompletionOptions.HiddenDefaultCmd = true

	flags := root.PersistentFlags()
	flags.SortFlags = false
	config.AddFileFlag(flags)
	config.AddFlags(flags, config.IsGlobal)
	a.output = outputTable
	flags.VarP(&choice{&a.output, []string{outputTable, outputJSON}}, "output", "o", "form of the result: table, json")

	for _, c := range commands(a) {
		root.AddCommand(c)
	}
	root.SetHelpCommand(newHelpCommand(root))
	unsorted(root)
	return root
}

// unsorted keeps the flags of help texts in the order of the option table.
func unsorted(cmd *cobra.Command) {
	cmd.Flags().SortFlags = false
	for _, c := range cmd.Commands() {
		unsorted(c)
	}
}

// addRelayFlags gives a command the options that only the relay needs.
func addRelayFlags(cmd *cobra.Command) {
	config.AddFlags(cmd.Flags(), config.IsLocal)
}

func showHelp(cmd *cobra.Command, _ []string) error { return cmd.Help() }

// noCommand is the Args of a command that only has subcommands.
func noCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	way := fmt.Sprintf("see %q", cmd.CommandPath()+" --help")
	cmd.SuggestionsMinimumDistance = 2
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		way = fmt.Sprintf("did you mean %q?", cmd.CommandPath()+" "+near[0])
	}
	return cli.UsageError(fmt.Sprintf("unknown command %q", cmd.CommandPath()+" "+logging.Scrub(args[0])), way)
}

// noArgs is the Args of a command that takes flags only.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return cli.UsageError(
		fmt.Sprintf("%s takes no argument, got %q", cmd.CommandPath(), logging.Scrub(args[0])),
		fmt.Sprintf("options begin with --; see %q", cmd.CommandPath()+" --help"))
}

// flagError makes a usage error of what pflag reports.
func flagError(cmd *cobra.Command, err error) error {
	way := fmt.Sprintf("see %q", cmd.CommandPath()+" --help")
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) {
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		if near, ok := config.Closest(unknown.GetSpecifiedName(), names); ok {
			way = fmt.Sprintf("did you mean --%s?", near)
		}
	}
	return cli.UsageError(err.Error(), way)
}

func newHelpCommand(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:   "help [command]",
		Short: "Show the help of a command",
		RunE: func(_ *cobra.Command, args []string) error {
			target, rest, err := root.Find(args)
			if err != nil || len(rest) > 0 {
				return cli.UsageError(fmt.Sprintf("no help for %q", strings.Join(args, " ")), `see "walpost --help" for the commands`)
			}
			return target.Help()
		},
	}
}

// choice is a flag with a fixed set of values.
type choice struct {
	at     *string
	values []string
}

func (c *choice) Set(s string) error {
	for _, v := range c.values {
		if s == v {
			*c.at = v
			return nil
		}
	}
	return fmt.Errorf("want %s", strings.Join(c.values, " or "))
}

func (c *choice) String() string { return *c.at }

// Type is the placeholder in help texts.
func (c *choice) Type() string { return strings.Join(c.values, "|") }

// usage is cobra's, shortened, with the global flags last. It is no template:
// with one in the program, the linker has to keep every exported method of every
// type, an eighth of the binary.
func usage(c *cobra.Command) error {
	var b strings.Builder
	b.WriteString("Usage:\n  ")
	if c.HasAvailableSubCommands() {
		b.WriteString(c.CommandPath() + " [command]\n\nCommands:")
		for _, sub := range c.Commands() {
			if sub.IsAvailableCommand() || sub.Name() == "help" {
				fmt.Fprintf(&b, "\n  %-*s  %s", sub.NamePadding(), sub.Name(), sub.Short)
			}
		}
	} else {
		b.WriteString(c.UseLine())
	}
	if c.HasExample() {
		b.WriteString("\n\nExamples:\n" + c.Example)
	}
	if c.HasAvailableLocalFlags() {
		b.WriteString("\n\nFlags [environment]:\n" + strings.TrimRightFunc(c.LocalFlags().FlagUsages(), unicode.IsSpace))
	}
	if c.HasAvailableInheritedFlags() {
		b.WriteString("\n\nGlobal flags [environment]:\n" + strings.TrimRightFunc(c.InheritedFlags().FlagUsages(), unicode.IsSpace))
	}
	b.WriteString("\n")
	_, err := c.OutOrStderr().Write([]byte(b.String()))
	return err
}
