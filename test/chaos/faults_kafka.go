package main

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/segmentio/kafka-go"
	"golang.org/x/sync/errgroup"

	"github.com/walpost/walpost/internal/testkit/proxy"
)

func kafkaFaults() []fault {
	return []fault{
		{"kafka-kill", "kill -9 of a broker", kafkaDomain, false, kafkaKill},
		{"kafka-term", "SIGTERM of a broker, which moves its leaders away if there are others", kafkaDomain, false, kafkaTerm},
		{"kafka-freeze", "SIGSTOP of a broker", kafkaDomain, false, kafkaFreeze},
		{"kafka-cut", "all connections to the brokers are cut, some times", kafkaDomain, false, kafkaCut},
		{"kafka-cut-request", "a connection breaks in the middle of a request", kafkaDomain, false, kafkaCutRequest},
		{"kafka-cut-response", "a connection breaks in the middle of an answer", kafkaDomain, false, kafkaCutResponse},
		{"kafka-lost-response", "requests arrive and are written, the answers never come", kafkaDomain, false, kafkaLostResponse},
		{"kafka-late-request", "requests hang in the line and arrive much later", kafkaDomain, false, kafkaLateRequest},
		{"kafka-line-stall", "the line to a broker stalls in both directions", kafkaDomain, false, kafkaLineStall},
		{"kafka-grow", "a topic is given one more partition", kafkaDomain, false, kafkaGrow},
		{"kafka-gone", "all brokers are gone for a while", kafkaDomain, false, kafkaGone},
		{"kafka-isr", "two of three brokers are gone: too few replicas in sync", kafkaDomain, true, kafkaISR},
		{"kafka-roll", "all brokers are restarted one after the other", kafkaDomain, true, kafkaRoll},
	}
}

func (b *bench) broker(r *rand.Rand) int { return r.IntN(b.servers.kafka.Len()) }

func kafkaKill(ctx context.Context, b *bench, r *rand.Rand) error {
	ctx, cancel := context.WithTimeout(ctx, 2*serverPatience)
	defer cancel()
	i := b.broker(r)
	if err := b.servers.kafka.Kill9(ctx, i); err != nil {
		return err
	}
	pause(ctx, between(r, 0, 3*time.Second))
	return b.servers.kafka.StartAgain(ctx, i)
}

func kafkaTerm(ctx context.Context, b *bench, r *rand.Rand) error {
	return restartBroker(ctx, b, b.broker(r), between(r, 0, 2*time.Second))
}

func restartBroker(ctx context.Context, b *bench, i int, away time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, 2*serverPatience)
	defer cancel()
	if err := b.servers.kafka.Term(ctx, i); err != nil {
		return err
	}
	pause(ctx, away)
	return b.servers.kafka.StartAgain(ctx, i)
}

func kafkaFreeze(ctx context.Context, b *bench, r *rand.Rand) error {
	i := b.broker(r)
	if err := b.servers.kafka.Pause(i); err != nil {
		return err
	}
	pause(ctx, between(r, 500*time.Millisecond, 8*time.Second))
	return b.servers.kafka.Resume(i)
}

// lines are the proxies of all brokers.
func (b *bench) lines() []*proxy.Proxy {
	var all []*proxy.Proxy
	for i := range b.servers.kafka.Len() {
		all = append(all, b.servers.kafka.Proxy(i))
	}
	return all
}

func kafkaCut(ctx context.Context, b *bench, r *rand.Rand) error {
	for range 1 + r.IntN(5) {
		for _, line := range b.lines() {
			line.Cut()
		}
		pause(ctx, between(r, 20*time.Millisecond, 800*time.Millisecond))
	}
	return nil
}

func kafkaCutRequest(ctx context.Context, b *bench, r *rand.Rand) error {
	return cutMid(ctx, b, r, proxy.ToServer, 20_000)
}

func kafkaCutResponse(ctx context.Context, b *bench, r *rand.Rand) error {
	return cutMid(ctx, b, r, proxy.ToClient, 200)
}

func cutMid(ctx context.Context, b *bench, r *rand.Rand, d proxy.Direction, most int) error {
	for range 2 + r.IntN(6) {
		for _, line := range b.lines() {
			line.DropAfter(int64(1+r.IntN(most)), d)
		}
		pause(ctx, between(r, 50*time.Millisecond, 500*time.Millisecond))
	}
	return nil
}

func kafkaLostResponse(ctx context.Context, b *bench, r *rand.Rand) error {
	for range 1 + r.IntN(3) {
		for _, line := range b.lines() {
			line.StallTo(proxy.ToClient)
		}
		pause(ctx, between(r, 100*time.Millisecond, 4*time.Second))
		for _, line := range b.lines() {
			line.Cut()
			line.Resume()
		}
		pause(ctx, between(r, 50*time.Millisecond, 300*time.Millisecond))
	}
	return nil
}

func kafkaLateRequest(ctx context.Context, b *bench, r *rand.Rand) error {
	for _, line := range b.lines() {
		line.StallTo(proxy.ToServer)
	}
	pause(ctx, between(r, 500*time.Millisecond, 7*time.Second))
	for _, line := range b.lines() {
		line.Resume()
	}
	return nil
}

func kafkaLineStall(ctx context.Context, b *bench, r *rand.Rand) error {
	line := b.servers.kafka.Proxy(b.broker(r))
	line.Stall()
	pause(ctx, between(r, 500*time.Millisecond, 8*time.Second))
	line.Resume()
	return nil
}

func kafkaGrow(ctx context.Context, b *bench, r *rand.Rand) error {
	name := topicOf + aggregateTypes[r.IntN(len(aggregateTypes))]
	b.judge.grown(name) // from before it happens: what the judge reads may be newer
	transport := &kafka.Transport{}
	defer transport.CloseIdleConnections()
	client := &kafka.Client{Addr: kafka.TCP(b.servers.kafka.DirectAddr()...), Transport: transport, Timeout: 10 * time.Second}
	for ctx.Err() == nil {
		n, err := partitionCount(ctx, client, name)
		if err == nil {
			var response *kafka.CreatePartitionsResponse
			response, err = client.CreatePartitions(ctx, &kafka.CreatePartitionsRequest{
				Topics: []kafka.TopicPartitionsConfig{{Name: name, Count: int32(n + 1)}},
			})
			if err == nil {
				err = response.Errors[name]
			}
		}
		if err == nil {
			b.note("topic %s has %d partitions now", name, n+1)
			return nil
		}
		pause(ctx, 200*time.Millisecond)
	}
	return context.Cause(ctx)
}

func kafkaGone(ctx context.Context, b *bench, r *rand.Rand) error {
	var all []int
	for i := range b.servers.kafka.Len() {
		all = append(all, i)
	}
	away := between(r, time.Second, 8*time.Second)
	if r.IntN(10) == 0 {
		away = time.Minute
	}
	return brokersGone(ctx, b, all, away)
}

func kafkaISR(ctx context.Context, b *bench, r *rand.Rand) error {
	return brokersGone(ctx, b, r.Perm(b.servers.kafka.Len())[:2], between(r, time.Second, 6*time.Second))
}

func brokersGone(ctx context.Context, b *bench, which []int, away time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, away+3*serverPatience)
	defer cancel()
	group, killing := errgroup.WithContext(ctx)
	for _, i := range which {
		group.Go(func() error { return b.servers.kafka.Kill9(killing, i) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	pause(ctx, away)
	return b.servers.kafka.StartAgain(ctx, which...)
}

func kafkaRoll(ctx context.Context, b *bench, r *rand.Rand) error {
	for _, i := range r.Perm(b.servers.kafka.Len()) {
		if err := restartBroker(ctx, b, i, between(r, 0, time.Second)); err != nil {
			return err
		}
		pause(ctx, between(r, 500*time.Millisecond, 2*time.Second))
	}
	return nil
}
