// Command walpost posts a PostgreSQL outbox to Kafka, straight from the WAL.
package main

import (
	"context"
	"io"
	"os"

	"github.com/walpost/walpost/internal/cli"
	"github.com/walpost/walpost/internal/failpoint"
	"github.com/walpost/walpost/internal/logging"
)

func main() {
	os.Exit(run(context.Background(), os.Args[1:], os.Environ(), os.Stdin, os.Stdout, os.Stderr))
}

// run is the whole program; it returns the exit code.
func run(ctx context.Context, args, environ []string, stdin io.Reader, stdout, stderr io.Writer) int {
	if err := failpoint.Arm(environ); err != nil {
		cli.PrintError(stderr, err, logging.Scrub)
		return cli.Usage
	}
	a := &app{stdin: stdin, stdout: stdout, stderr: stderr, environ: environ, readFile: os.ReadFile}
	root := newRootCommand(a)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	cli.PrintError(stderr, err, logging.Scrub)
	return cli.ExitCode(err)
}
