// Goexample is the example in Go, built on package outbox. With BREAK in its
// environment it makes one of the mistakes that the oracle has to notice.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"

	"github.com/walpost/walpost/outbox"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	switch {
	case err == nil:
	case errors.Is(err, outbox.ErrGap):
		fmt.Fprintln(os.Stderr, err)
		os.Exit(4)
	default:
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	var numbers []int
	for _, arg := range args[min(1, len(args)):] {
		n, err := strconv.Atoi(arg)
		if err != nil {
			return fmt.Errorf("argument %q is not a number", arg)
		}
		numbers = append(numbers, n)
	}
	conn, err := connect(ctx)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	switch {
	case len(args) == 3 && args[0] == "write":
		return write(ctx, conn, numbers[0], numbers[1], mistake(os.Getenv("BREAK")))
	case len(args) == 2 && args[0] == "consume":
		return consume(ctx, conn, numbers[0], mistake(os.Getenv("BREAK")))
	}
	return errors.New("usage: goexample write N START | consume N")
}

// mistake is one of those that docs/contract.md warns of; "" is none.
type mistake string

const (
	outsideTransaction mistake = "outside-transaction" // the event is committed by itself
	versionGuessed     mistake = "version-guessed"     // the version is counted by the process
	noDedup            mistake = "no-dedup"            // neither ids nor versions are looked at
	offsetFirst        mistake = "offset-first"        // the offset is committed before the effect
	dedupApart         mistake = "dedup-apart"         // processed_events has a transaction of its own
	gapsIgnored        mistake = "gaps-ignored"        // versions are not looked at
)
