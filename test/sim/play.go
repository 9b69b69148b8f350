package sim

import (
	"time"

	"github.com/jackc/pglogrepl"
)

// play does a step and returns when it is over.
func (w *world) play(s step) {
	c, pg := w.cluster, w.postgres
	during := func(r *rule) {
		c.addRule(r)
		time.Sleep(s.For)
		c.dropRule(r)
	}
	anyBroker := int32(-1)
	if s.N%2 == 0 {
		anyBroker = int32(s.N/2) % int32(len(c.brokers))
	}
	switch s.Kind {
	case "kill":
		for _, i := range w.live() {
			if s.N%4 == 0 || i == w.holder() {
				i.killed()
			}
		}
	case "stop":
		if i := w.holder(); i != nil {
			i.stop()
		}
	case "freeze":
		// Frozen until after a successor has taken over, then a zombie.
		i := w.holder()
		if i == nil {
			return
		}
		i.hold(true, true)
		w.replace(i)
		time.Sleep(s.For)
		i.release(true, true)
		// Two of them, until one finds out.
		time.Sleep(5 * time.Second)
	case "second":
		w.want("b", true)
		time.Sleep(s.For)
		w.want("b", false)
		if i := w.at("b"); i != nil {
			i.stop()
		}
	case "kafka-hold", "pg-hold":
		if i := w.holder(); i != nil {
			onPostgres := s.Kind == "pg-hold"
			i.hold(onPostgres, !onPostgres)
			if s.Flag {
				w.replace(i)
			}
			time.Sleep(s.For)
			i.release(onPostgres, !onPostgres)
		}
	case "pg-crash":
		pg.crash()
		time.Sleep(s.For)
		pg.start()
	case "pg-restart":
		pg.stop()
		time.Sleep(s.For)
		pg.start()
	case "pg-cut":
		pg.terminate()
	case "pg-save":
		pg.save()
	case "lose-request":
		during(&rule{broker: anyBroker, number: -1, loseRequest: true, keys: w.keys(s)})
	case "lose-answer":
		during(&rule{broker: anyBroker, number: -1, loseResponse: true, half: s.Flag, keys: w.keys(s)})
	case "delay":
		during(&rule{broker: anyBroker, number: -1, delay: s.Delay, keys: w.keys(s)})
	case "slow":
		during(&rule{broker: anyBroker, number: -1, slow: s.Delay})
	case "cut":
		c.with(func() {
			for conn := range c.brokers[s.N%len(c.brokers)].open {
				conn.cut(s.Flag)
			}
		})
	case "broker":
		b := c.brokers[s.N%len(c.brokers)]
		w.log("cluster", "%s down", c.name(b))
		c.fail(b, s.For/3)
		time.Sleep(s.For)
		c.recover(b)
		w.log("cluster", "%s up", c.name(b))
	case "leader":
		w.onPartition(s, func(p *partition) {
			if s.Flag {
				c.truncate(p)
			}
			p.replicate()
			c.elect(p)
			w.log("cluster", "%s/%d led by %d", p.topic, p.number, p.leader)
		}, nil)
	case "stall":
		// Followers fetch nothing; in the end the leader moves, or they catch up.
		w.onPartition(s, func(p *partition) { p.stalled++ }, func(p *partition) {
			if s.Flag {
				c.truncate(p)
				c.elect(p)
			}
			p.stalled--
			p.replicate()
		})
	case "short":
		w.onPartition(s, func(p *partition) { p.short++ }, func(p *partition) { p.short-- })
	case "code":
		during(&rule{keys: []int16{keyProduce}, broker: -1, number: -1, code: int16(s.N), stored: s.Flag})
	case "coordinator":
		during(&rule{keys: []int16{keyFindCoordinator, keyInitProducerID, keyAddPartitions, keyEndTxn}, broker: -1, number: -1, code: int16(s.N)})
	case "list":
		during(&rule{keys: []int16{keyListOffsets, keyFetch}, broker: -1, number: -1, code: int16(s.N)})
	case "grow":
		topic := w.plan.Topics[s.N%len(w.plan.Topics)]
		c.with(func() {
			if n := len(c.topics[topic]); n > 0 && n < 6 {
				c.grow(topic, n+1+s.N%2)
				w.log("cluster", "%s has %d partitions", topic, len(c.topics[topic]))
			}
		})
	default:
		w.fail("schedule", "no such step: %v", s)
	}
}

// keys that a fault is for: often produce alone, sometimes everything.
func (w *world) keys(s step) []int16 {
	switch s.N % 4 {
	case 0:
		return nil
	case 1:
		return []int16{keyInitProducerID, keyAddPartitions, keyEndTxn, keyListOffsets, keyFetch}
	default:
		return []int16{keyProduce}
	}
}

// onPartition does begin, and end after the step's time.
func (w *world) onPartition(s step, begin, end func(*partition)) {
	c := w.cluster
	var p *partition
	c.with(func() {
		if all := c.all(); len(all) > 0 {
			p = all[s.N%len(all)]
			begin(p)
		}
	})
	if p == nil || end == nil {
		return
	}
	time.Sleep(s.For)
	c.with(func() { end(p) })
}

// holder is the process that streams, or one that would.
func (w *world) holder() *instance {
	w.postgres.mu.Lock()
	s := w.postgres.active
	w.postgres.mu.Unlock()
	if s != nil && !s.who.isDead() {
		return s.who
	}
	if i := w.at("a"); i != nil && !i.isDead() {
		return i
	}
	return nil
}

// replace starts a successor of a process that still lives.
func (w *world) replace(i *instance) {
	for _, place := range []string{"a", "b"} {
		if w.at(place) == i {
			w.abandon(place)
		}
	}
}

func (pg *postgres) position() pglogrepl.LSN {
	pg.mu.Lock()
	defer pg.mu.Unlock()
	return pg.end
}
