package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/walpost/walpost/internal/testkit"
	service "github.com/walpost/walpost/outbox"
	"github.com/walpost/walpost/outbox/outboxkafka"
)

// consumerVariable says that this process is a consumer, and which one.
const consumerVariable = "WALPOST_E2E_CONSUMER"

// consumerJob is what such a process is told.
type consumerJob struct {
	DSN, Topic, Group string
	Brokers           []string
}

// consumerProcess is what the test binary does when it was started as a consumer.
func consumerProcess() int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := runConsumer(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func runConsumer(ctx context.Context) error {
	var job consumerJob
	if err := json.Unmarshal([]byte(os.Getenv(consumerVariable)), &job); err != nil {
		return err
	}
	pool, err := pgxpool.New(ctx, job.DSN)
	if err != nil {
		return err
	}
	defer pool.Close()
	consumer, err := service.NewConsumer(pool, service.ConsumerOptions{Name: job.Group})
	if err != nil {
		return err
	}
	runner, err := outboxkafka.New(outboxkafka.Options{
		Brokers: job.Brokers, Group: job.Group, Topics: []string{job.Topic},
		Consumer: consumer, Handler: takeEffect,
		// Soon enough that there is something to commit, and late enough that a kill
		// leaves events that were applied and are read again.
		CommitEvery:    500 * time.Millisecond,
		SessionTimeout: 6 * time.Second, // the least that brokers take
		Log:            slog.New(slog.NewTextHandler(os.Stderr, nil)),
	})
	if err != nil {
		return err
	}
	return runner.Run(ctx)
}

func takeEffect(ctx context.Context, tx pgx.Tx, m service.Message) error {
	_, err := tx.Exec(ctx, `insert into effects (event_id, aggregate_id, version) values ($1::uuid, $2, $3)`, m.ID.String(), m.AggregateID, m.Version)
	return err
}

// consumer is a running consumer process.
type consumer struct {
	a    *application
	cmd  *exec.Cmd
	wait func() error
}

// consume starts one. It is killed when the test ends.
func (a *application) consume() *consumer {
	a.t.Helper()
	job, err := json.Marshal(consumerJob{DSN: a.dsn, Topic: a.topic("order"), Group: a.prefix, Brokers: a.brokers})
	need(a.t, err)
	c := &consumer{a: a, cmd: exec.Command(os.Args[0])}
	c.cmd.Env = append(os.Environ(), consumerVariable+"="+string(job))
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var log bytes.Buffer // read when the process has ended
	c.cmd.Stdout, c.cmd.Stderr = &log, &log
	need(a.t, c.cmd.Start())
	c.wait = sync.OnceValue(c.cmd.Wait)
	a.t.Cleanup(func() {
		_ = c.cmd.Process.Kill()
		_ = c.wait() // its code was looked at, if it mattered
		if a.t.Failed() || bytes.Contains(log.Bytes(), []byte("DATA RACE")) {
			a.t.Errorf("log of a consumer:\n%s", &log)
		}
	})
	return c
}

// kill ends it with SIGKILL.
func (c *consumer) kill() {
	c.a.t.Helper()
	need(c.a.t, c.cmd.Process.Kill())
	if err := c.wait(); err == nil {
		c.a.t.Error("a consumer ended well before it was killed")
	}
}

// stop ends it with SIGTERM and demands a clean end.
func (c *consumer) stop() {
	c.a.t.Helper()
	need(c.a.t, c.cmd.Process.Signal(syscall.SIGTERM))
	ended := make(chan error, 1) // closed by nobody: one value
	go func() { ended <- c.wait() }()
	select {
	case err := <-ended:
		need(c.a.t, err)
	case <-testkit.Context(c.a.t).Done():
		c.a.t.Error("a consumer does not end")
	}
}
