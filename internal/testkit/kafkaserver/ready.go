package kafkaserver

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/segmentio/kafka-go"
)

// AwaitReady waits until each running broker lists all running brokers.
func (c *Cluster) AwaitReady(ctx context.Context) error {
	tick := time.NewTicker(25 * time.Millisecond)
	defer tick.Stop()
	for {
		err := c.ready(ctx)
		if err == nil {
			return nil
		}
		var dead *deadError
		if errors.As(err, &dead) {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
	}
}

// deadError says that a broker ended by itself.
type deadError struct {
	id  int
	log string
}

func (e *deadError) Error() string { return fmt.Sprintf("broker %d has ended:\n%s", e.id, e.log) }

func (c *Cluster) ready(ctx context.Context) error {
	var running []*broker
	for _, b := range c.brokers {
		if b.running() != nil {
			running = append(running, b)
		}
	}
	for _, b := range running {
		listed, err := brokers(ctx, b.addr(replication))
		if b.ended() {
			return &deadError{id: b.id, log: b.logTail()}
		}
		if err != nil {
			return fmt.Errorf("broker %d: %w", b.id, err)
		}
		for _, other := range running {
			if !listed[other.id] {
				return fmt.Errorf("broker %d does not know broker %d", b.id, other.id)
			}
		}
	}
	if len(running) == 0 {
		return errors.New("no broker runs")
	}
	return nil
}

// brokers asks one broker which ones it knows.
func brokers(ctx context.Context, addr string) (map[int]bool, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	conn, err := (&kafka.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	deadline, _ := ctx.Deadline()
	if err := conn.SetDeadline(deadline); err != nil {
		return nil, err
	}
	listed, err := conn.Brokers()
	if err != nil {
		return nil, err
	}
	known := map[int]bool{}
	for _, b := range listed {
		known[b.ID] = true
	}
	return known, nil
}
