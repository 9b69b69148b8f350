package sim

import (
	"context"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"
)

// cluster is Kafka: brokers that speak the protocol over connections in memory,
// and the state that they share. The mutex is never held while time passes.
type cluster struct {
	world *world
	mu    sync.Mutex

	topics    map[string][]*partition
	brokers   []*broker
	producers producers
	rules     []*rule
	order     int
	maxBatch  int // of every topic; 0: no limit
	denied    struct{ transactionalID, fetch bool }
	create    int // partitions of a topic that is made on demand
	copies    map[string][]*copyOf
}

type broker struct {
	id   int32
	down int // faults that keep it down
	open map[*conn]*instance
}

func newCluster(w *world, brokers int) *cluster {
	c := &cluster{world: w, topics: map[string][]*partition{}, copies: map[string][]*copyOf{}}
	c.producers = producers{next: 1000, ids: map[string]*owner{}}
	for id := range brokers {
		c.brokers = append(c.brokers, &broker{id: int32(id), open: map[*conn]*instance{}})
	}
	return c
}

func (c *cluster) spawn(f func())                      { c.world.spawn(f) }
func (c *cluster) log(who, format string, args ...any) { c.world.log(who, format, args...) }
func (c *cluster) name(b *broker) string               { return "b" + string(rune('0'+b.id)) }
func (c *cluster) with(f func())                       { c.mu.Lock(); f(); c.mu.Unlock() }
func (c *cluster) addRule(r *rule)                     { c.with(func() { c.rules = append(c.rules, r) }) }

func (c *cluster) dropRule(r *rule) {
	c.with(func() { c.rules = slices.DeleteFunc(c.rules, func(x *rule) bool { return x == r }) })
}

func (c *cluster) find(topic string, number int32) *partition {
	list := c.topics[topic]
	if number < 0 || int(number) >= len(list) {
		return nil
	}
	return list[number]
}

// grow gives a topic partitions up to n.
func (c *cluster) grow(topic string, n int) {
	for number := len(c.topics[topic]); number < n; number++ {
		leader := c.brokers[(number+len(topic))%len(c.brokers)]
		p := newPartition(topic, int32(number), leader.id)
		if leader.down > 0 {
			c.elect(p)
		}
		c.topics[topic] = append(c.topics[topic], p)
	}
}

// all partitions, in a fixed order.
func (c *cluster) all() (list []*partition) {
	var names []string
	for name := range c.topics {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		list = append(list, c.topics[name]...)
	}
	return list
}

// elect gives a partition another leader that is up, if there is one.
func (c *cluster) elect(p *partition) {
	for i := range c.brokers {
		b := c.brokers[(int(p.leader)+1+i)%len(c.brokers)]
		if b.down == 0 {
			p.leader = b.id
			p.notify()
			return
		}
	}
}

// fail takes a broker down, and lets it come up after a while.
func (c *cluster) fail(b *broker, elect time.Duration) {
	c.with(func() {
		b.down++
		for conn := range b.open {
			conn.cut(true)
		}
	})
	c.spawn(func() {
		time.Sleep(elect)
		c.with(func() {
			for _, p := range c.all() {
				if c.brokers[p.leader].down > 0 {
					c.elect(p)
				}
			}
		})
	})
}

func (c *cluster) recover(b *broker) {
	c.with(func() {
		b.down--
		for _, p := range c.all() {
			p.notify()
		}
	})
}

// dial is what the sink calls.
func (c *cluster) dial(ctx context.Context, who *instance, addr string) (net.Conn, error) {
	if err := who.kafka.reach(ctx); err != nil {
		return nil, err
	}
	time.Sleep(latency)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, b := range c.brokers {
		if c.name(b)+":9092" != addr {
			continue
		}
		if b.down > 0 || who.isDead() {
			break
		}
		client, server := pipe(addr)
		b.open[client] = who
		if who.kafka.isHeld() {
			client.hold(true)
		}
		c.spawn(func() { c.serve(b, server, client, who) })
		return client, nil
	}
	return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
}

// each calls f for the connections of an instance.
func (c *cluster) each(who *instance, f func(*conn)) {
	c.with(func() {
		for _, b := range c.brokers {
			for conn, i := range b.open {
				if i == who {
					f(conn)
				}
			}
		}
	})
}

// closeAll ends every connection; the simulation is over.
func (c *cluster) closeAll() {
	c.with(func() {
		for _, b := range c.brokers {
			for conn := range b.open {
				conn.cut(true)
			}
		}
		for _, p := range c.all() {
			p.stalled = 0
			p.replicate()
		}
	})
}

// stored notes that a batch is in the log; committed says what consumers see.
func (c *cluster) stored(p *partition, b *batch, by string) {
	for _, e := range b.copies {
		e.order, e.by = c.order, by
		c.order++
		c.copies[e.id] = append(c.copies[e.id], e)
		c.log("cluster", "append %s %s/%d offset=%d by=%s pid=%d epoch=%d seq=%d", e.id, p.topic, p.number, e.offset, by, b.pid, b.epoch, b.seq)
	}
}

// truncate forgets copies that a leader lost.
func (c *cluster) truncate(p *partition) {
	if p.end == p.hw {
		return
	}
	end := p.hw
	c.log("cluster", "truncate %s/%d to %d", p.topic, p.number, end)
	p.truncate()
	for id, list := range c.copies {
		c.copies[id] = slices.DeleteFunc(list, func(e *copyOf) bool {
			return e.topic == p.topic && e.partition == p.number && e.offset >= end
		})
	}
}

// has says whether an event is where no leader change can lose it.
func (c *cluster) has(id string) bool {
	for _, e := range c.copies[id] {
		if p := c.find(e.topic, e.partition); e.offset < p.hw {
			return true
		}
	}
	return false
}
