package sim

import (
	"context"
	"fmt"
	"maps"
	"net"
	"syscall"
	"time"

	"github.com/walpost/walpost/checkpoint"
)

// store is relay.Store for one instance, with the rules of checkpoint.Store.
// A call whose answer does not arrive may have been done
// all the same, and one that is stuck in the network is done late.
type store struct {
	pg    *postgres
	who   *instance
	epoch int64 // of our claim; guarded by the server
}

func copyOfCheckpoint(c *checkpoint.Checkpoint) *checkpoint.Checkpoint {
	if c == nil {
		return nil
	}
	d := *c
	d.Offsets = maps.Clone(c.Offsets)
	return &d
}

// do sends a statement to the server and waits for its answer.
func (s *store) do(ctx context.Context, doing string, statement func() error) error {
	if s.who.postgres.dead.Load() {
		return net.ErrClosed
	}
	done := make(chan error, 1)
	s.who.world.spawn(func() {
		background := context.Background()
		if err := s.who.postgres.reach(background); err != nil {
			done <- err
			return
		}
		time.Sleep(latency)
		s.pg.mu.Lock()
		err := s.refused()
		switch {
		case err != nil:
		case s.pg.noTables:
			err = fmt.Errorf("%s: %w", doing, checkpoint.ErrNoStore)
		default:
			err = statement()
			s.pg.notify()
		}
		s.pg.mu.Unlock()
		time.Sleep(latency)
		if lost := s.who.postgres.reach(background); lost != nil {
			err = lost
		}
		s.pg.mu.Lock()
		if gone := s.refused(); gone != nil && err == nil {
			err = gone
		}
		s.pg.mu.Unlock()
		done <- err
	})
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *store) refused() error {
	if s.pg.down > 0 || s.who.isDead() {
		return &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
	return nil
}

// Load is checkpoint.Store's.
func (s *store) Load(ctx context.Context) (*checkpoint.Checkpoint, error) {
	read := make(chan *checkpoint.Checkpoint, 1)
	err := s.do(ctx, "load checkpoint", func() error {
		read <- copyOfCheckpoint(s.pg.tables)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return <-read, nil
}

// Claim is checkpoint.Store's.
func (s *store) Claim(ctx context.Context, of checkpoint.Checkpoint, owner string) (*checkpoint.Checkpoint, error) {
	read := make(chan *checkpoint.Checkpoint, 1)
	var epoch int64 // a claim whose answer does not arrive is not known to be ours
	err := s.do(ctx, "claim checkpoint", func() error {
		if s.pg.tables == nil {
			s.pg.tables = &checkpoint.Checkpoint{
				SystemID: of.SystemID, Timeline: of.Timeline, KafkaCluster: of.KafkaCluster, Offsets: map[checkpoint.Partition]int64{},
			}
		}
		s.pg.epoch++
		epoch = s.pg.epoch
		s.pg.end += 100
		s.pg.world.log("postgres", "checkpoint claimed by %s as %d", s.who.name, epoch)
		read <- copyOfCheckpoint(s.pg.tables)
		return nil
	})
	if err != nil {
		return nil, err
	}
	s.pg.with(func() { s.epoch = epoch })
	return <-read, nil
}

// Save is checkpoint.Store's: nothing goes back, unless fresh forgets it.
func (s *store) Save(ctx context.Context, c checkpoint.Checkpoint, fresh bool) error {
	kept := copyOfCheckpoint(&c)
	return s.do(ctx, "save checkpoint", func() error { return s.save(kept, fresh) })
}

func (s *store) save(c *checkpoint.Checkpoint, fresh bool) error {
	if s.pg.tables == nil || s.epoch != s.pg.epoch {
		s.pg.world.log("postgres", "checkpoint of %s refused: claim %d after %d", s.who.name, s.pg.epoch, s.epoch)
		return fmt.Errorf("save checkpoint: %w", checkpoint.ErrSucceeded)
	}
	s.pg.check("checkpoint", s.who, c.LSN)
	old := s.pg.tables
	if fresh {
		old = &checkpoint.Checkpoint{Offsets: map[checkpoint.Partition]int64{}}
	}
	next := copyOfCheckpoint(old)
	next.SystemID, next.Timeline, next.KafkaCluster = c.SystemID, c.Timeline, c.KafkaCluster
	next.LSN = max(old.LSN, c.LSN)
	for p, offset := range c.Offsets {
		if old, known := next.Offsets[p]; !known || offset > old {
			next.Offsets[p] = offset
		}
		s.pg.world.log("postgres", "checkpoint of %s: %v %s/%d at %d", s.who.name, c.LSN, p.Topic, p.Number, offset)
	}
	s.pg.tables = next
	s.pg.end += 200 // its own WAL
	return nil
}

// Close is checkpoint.Store's.
func (s *store) Close(context.Context) {}
