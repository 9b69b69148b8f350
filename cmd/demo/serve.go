package main

import (
	"context"
	"fmt"
	"strings"
)

// serve starts the servers and keeps them. What it prints is for a shell, which
// may read it as soon as it is there.
func (d *demonstration) serve(ctx context.Context) error {
	if err := d.startPostgres(ctx); err != nil {
		return err
	}
	if err := d.startKafka(ctx); err != nil {
		return err
	}
	_, err := fmt.Fprintf(d.stdout, "export DATABASE_URL=%s\nexport KAFKA_BROKERS=%s\n", quoted(d.dsn), quoted(strings.Join(d.brokers, ",")))
	if err != nil {
		return fmt.Errorf("print the addresses: %w", err)
	}
	d.say("both servers run until Ctrl-C")
	<-ctx.Done()
	return nil
}

// quoted is a word for a POSIX shell.
func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
