package drill

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/walpost/walpost/outbox"
)

// repeatMessage produces every record again, lets two consumer instances of one
// name read everything at once, and a third from the beginning.
func repeatMessage(ctx context.Context, a *arena, r *Report) error {
	if err := a.startRelay(); err != nil {
		return err
	}
	if err := a.writeAndArrive(ctx, a.opt.Events); err != nil {
		return err
	}
	if err := a.delivered(ctx, r, nil); err != nil {
		return err
	}
	a.kill()
	records, err := a.broker.read(ctx)
	if err != nil {
		return err
	}
	if err := a.broker.produce(ctx, records); err != nil {
		return err
	}
	deliveries := 3 * 2 * len(records)
	first, err := a.consume(ctx, outbox.ConsumerOptions{}, "one", "two")
	if err != nil {
		return err
	}
	reset, err := a.consume(ctx, outbox.ConsumerOptions{}, "reset")
	if err != nil {
		return err
	}
	r.equal("deliveries that were recognised as repeats", deliveries-a.opt.Events, first.known.Load()+reset.known.Load())
	return a.effects(ctx, r)
}

// versionsOutOfOrder sends versions 1, 3, 2 and 5 of an aggregate, and 4 later.
func versionsOutOfOrder(ctx context.Context, a *arena, r *Report) error {
	send := func(versions ...int64) error {
		var messages []outbox.Message
		for _, v := range versions {
			messages = append(messages, outOfOrder(a.topic, v))
		}
		return a.broker.produce(ctx, messages)
	}
	policy := outbox.ConsumerOptions{Versions: outbox.ParkGaps, FirstVersion: outbox.FirstOne}
	if a.opt.tamper.versions != 0 {
		policy = outbox.ConsumerOptions{Versions: a.opt.tamper.versions, Dedup: outbox.ByID}
	}
	if err := send(1, 3, 2, 5); err != nil {
		return err
	}
	if err := a.policies(ctx, r); err != nil {
		return err
	}
	if _, err := a.consume(ctx, policy, "group"); err != nil {
		return err
	}
	if err := a.applied(ctx, r, "versions applied while 4 is missing", "1,2,3"); err != nil {
		return err
	}
	if err := a.parked(ctx, r, "versions parked while 4 is missing", "5"); err != nil {
		return err
	}
	if err := send(4); err != nil {
		return err
	}
	if _, err := a.consume(ctx, policy, "later"); err != nil {
		return err
	}
	if err := a.applied(ctx, r, "versions applied once 4 has come", "1,2,3,4,5"); err != nil {
		return err
	}
	return a.parked(ctx, r, "versions still parked", "")
}

// policies passes what is in the topic to a consumer that refuses gaps, and to one
// that waits for a moment and then parks.
func (a *arena) policies(ctx context.Context, r *Report) error {
	for _, p := range []struct {
		name   string
		policy outbox.VersionPolicy
		want   string
	}{
		{"refuses gaps", outbox.RejectGaps, "1 applied, 3 refused, 2 applied, 5 refused"},
		{"waits, then parks", outbox.DeferGaps, "1 applied, 3 parked, 2 applied, 5 parked"},
	} {
		if a.opt.tamper.versions != 0 {
			p.policy = a.opt.tamper.versions
		}
		consumer, err := outbox.NewConsumer(a.conn, outbox.ConsumerOptions{
			Name: "drill, " + p.name, Schema: a.name, Versions: p.policy, FirstVersion: outbox.FirstOne, GapWait: 200 * time.Millisecond,
		})
		if err != nil {
			return err
		}
		messages, err := a.broker.read(ctx)
		if err != nil {
			return err
		}
		var got []string
		for _, m := range messages {
			result, err := consumer.Process(ctx, m, func(context.Context, pgx.Tx, outbox.Message) error { return nil })
			became := result.Outcome.String()
			if errors.Is(err, outbox.ErrGap) {
				became = "refused"
			} else if err != nil {
				return err
			}
			got = append(got, fmt.Sprint(m.Version, " ", became))
		}
		r.equal("versions 1, 3, 2, 5 at a consumer that "+p.name, p.want, strings.Join(got, ", "))
	}
	return nil
}

func outOfOrder(topic string, version int64) outbox.Message {
	id := uuid.NewSHA1(uuid.NameSpaceURL, []byte{byte(version)})
	m := outbox.Message{Record: outbox.Record{Topic: topic, Key: []byte("a0"), Value: []byte("{}")}}
	m.Headers = headers(id, version)
	return m
}

func (a *arena) applied(ctx context.Context, r *Report, must, want string) error {
	var got string
	err := a.conn.QueryRow(ctx, "select coalesce(string_agg(version::text, ',' order by n), '') from "+a.table("effects")).Scan(&got)
	r.equal(must, want, got)
	return err
}

func (a *arena) parked(ctx context.Context, r *Report, must, want string) error {
	var got string
	err := a.conn.QueryRow(ctx, "select coalesce(string_agg(aggregate_version::text, ',' order by aggregate_version), '') from "+
		a.table("parked_events")+" where resolved_at is null and consumer = 'drill'").Scan(&got)
	r.equal(must, want, got)
	return err
}

func headers(id uuid.UUID, version int64) []outbox.Header {
	return []outbox.Header{
		{Key: "id", Value: []byte(id.String())},
		{Key: "aggregate_type", Value: []byte("drill")},
		{Key: "aggregate_version", Value: strconv.AppendInt(nil, version, 10)},
	}
}
