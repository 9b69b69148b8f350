package drill

import (
	"context"
	"fmt"
	"strings"

	"github.com/google/uuid"

	"github.com/walpost/walpost/outbox"
)

const rounds = 10

// stopService starts the relay only when the service is dead.
func stopService(ctx context.Context, a *arena, r *Report) error {
	service, err := a.start(RoleService, a.opt.Events)
	if err != nil {
		return err
	}
	select {
	case <-service.done:
	case <-ctx.Done():
		service.kill()
		return context.Cause(ctx)
	}
	_ = service.stdin.Close()
	undone := map[uuid.UUID]bool{}
	for id := range strings.FieldsSeq(service.out.String()) {
		parsed, err := uuid.Parse(id)
		if err != nil {
			return fmt.Errorf("the service said %q: %w", id, err)
		}
		undone[parsed] = true
	}
	if len(undone) < a.opt.Events {
		return &Error{Text: "the service did not get to its end: " + lastLine(service.log.String()), Way: "check the role's rights", Err: service.err}
	}
	committed, err := a.committed(ctx)
	if err != nil {
		return err
	}
	r.equal("the service committed before it was killed", a.opt.Events, len(committed))
	if a.opt.tamper.beforeRelay != nil {
		if err := a.opt.tamper.beforeRelay(ctx, a); err != nil {
			return err
		}
	}
	return a.relayed(ctx, r, undone)
}

// relayed runs the relay until everything has arrived, and then the consumer.
func (a *arena) relayed(ctx context.Context, r *Report, undone map[uuid.UUID]bool) error {
	if err := a.startRelay(); err != nil {
		return err
	}
	if err := a.delivered(ctx, r, undone); err != nil {
		return err
	}
	a.kill()
	if _, err := a.consume(ctx, outbox.ConsumerOptions{}, "group"); err != nil {
		return err
	}
	return a.effects(ctx, r)
}

// killRelay kills it, again and again, while the brokers have a record and it
// does not know.
func killRelay(ctx context.Context, a *arena, r *Report) error {
	killed, n := 0, max(a.opt.Events/(2*rounds), 1)
	for range rounds {
		if err := a.startRelay(); err != nil {
			return err
		}
		// What is warm needs no answers before the next request is written.
		if err := a.writeAndArrive(ctx, n); err != nil {
			return err
		}
		before, _, err := a.broker.ends(ctx)
		if err != nil {
			return err
		}
		a.proxy.hold()
		if err := write(ctx, a.conn, a.name, n, nil); err != nil {
			return err
		}
		stored, err := a.await(ctx, a.opt.patience/4, func() (bool, error) {
			now, _, err := a.broker.ends(ctx)
			return now > before, err
		})
		if err != nil {
			return err
		}
		if stored {
			killed++
		}
		a.kill()
		a.proxy.reset()
	}
	r.equal("times that the relay was killed between Kafka's ack and its arrival", rounds, killed)
	if a.opt.tamper.beforeRelay != nil {
		if err := a.opt.tamper.beforeRelay(ctx, a); err != nil {
			return err
		}
	}
	return a.relayed(ctx, r, nil)
}

// writeAndArrive writes n events and waits until all there are have arrived.
func (a *arena) writeAndArrive(ctx context.Context, n int) error {
	if err := write(ctx, a.conn, a.name, n, nil); err != nil {
		return err
	}
	want, err := a.committed(ctx)
	if err != nil {
		return err
	}
	_, err = a.await(ctx, a.opt.patience, func() (bool, error) {
		got, err := a.broker.read(ctx)
		seen := map[uuid.UUID]bool{}
		for _, m := range got {
			seen[m.ID] = true
		}
		return len(seen) >= len(want), err
	})
	return err
}
