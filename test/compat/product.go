package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"time"
)

const (
	// patience is how long a run may take to do what it should.
	patience = 2 * time.Minute
	// settled is how long nothing may come after what is not told.
	settled = 300 * time.Millisecond
)

// product runs corpora through walpost.
type product struct {
	binary  string
	servers *servers
}

// run runs a corpus in a lane.
func (p *product) run(ctx context.Context, l *lane, c *corpus) (r *run, err error) {
	dir, err := os.MkdirTemp("", "walpost-compat-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if err := l.clear(ctx); err != nil {
		return nil, err
	}
	d, err := p.servers.newDatabase(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.drop(context.WithoutCancel(ctx))) }()
	if err := d.execute(ctx, c.table); err != nil {
		return nil, err
	}
	connector := connectorFile{c.connector.Name, d.rewritten(c.connector.Config)}
	began := time.Now()
	var args []string
	var w *walpost
	for {
		if w, err = startWalpost(p.binary, dir, c.outcome.Java, connector, l.brokers(), args...); err != nil {
			return nil, err
		}
		r, err = p.follow(ctx, l, d, w, c)
		err = errors.Join(err, w.close(context.WithoutCancel(ctx)))
		if err != nil || args != nil || !r.refused || !strings.Contains(r.reason, reproduceHint) {
			break
		}
		// A run of its own: nothing has been published.
		args = []string{reproduce}
		_ = os.Remove(w.file("walpost.log"))
	}
	if err != nil {
		return nil, err
	}
	if args != nil {
		r.notes = append(r.notes, "with "+reproduce)
	}
	r.began, r.ended = began.UnixMilli(), time.Now().UnixMilli()
	// The database has a name of its own for each run.
	for i := range r.records {
		r.records[i].Value = renamed(r.records[i].Value, d.name, c.connector.Config["database.dbname"])
	}
	return r, nil
}

// follow lets it run until it has delivered everything, holds, or has ended.
func (p *product) follow(ctx context.Context, l *lane, d *database, w *walpost, c *corpus) (*run, error) {
	r := &run{}
	ended := func() bool {
		if !w.running() {
			r.refused, r.reason = true, w.why()
		}
		return r.refused
	}
	err := await(ctx, patience, "walpost to read its slot", func() (bool, error) {
		if ended() {
			return true, nil
		}
		return d.streaming(ctx)
	})
	if err != nil {
		return nil, errors.Join(err, errors.New(tail(w.file("walpost.log"))))
	}
	if r.refused {
		r.records, err = l.records(ctx)
		return r, err
	}
	if err := d.execute(ctx, c.rows); err != nil {
		return nil, err
	}
	end, err := d.end(ctx)
	if err != nil {
		return nil, err
	}
	err = await(ctx, patience, "walpost to confirm everything", func() (bool, error) {
		if ended() {
			return true, nil
		}
		var h hold
		if h, r.held = w.holds(ctx); r.held {
			r.reason, r.lane = h.why, h.lane
			return h.still, nil
		}
		return d.confirmed(ctx, end)
	})
	if err != nil {
		return nil, errors.Join(err, errors.New(tail(w.file("walpost.log"))))
	}
	if r.refused || !r.held {
		r.records, err = l.records(ctx)
	} else {
		r.records, err = l.quiet(ctx, settled)
	}
	if err != nil {
		return nil, err
	}
	if !r.refused && !r.held {
		if err := w.stop(ctx); err != nil {
			r.notes = append(r.notes, "at its stop: "+err.Error())
		}
	}
	return r, nil
}

// renamed gives a text the database's name that the corpus has.
func renamed(value []byte, from, to string) []byte {
	if to == "" || !bytes.Contains(value, []byte(from)) {
		return value // also nil
	}
	return bytes.ReplaceAll(value, []byte(from), []byte(to))
}

// quiet are the records, once no more have come for a time.
func (l *lane) quiet(ctx context.Context, silence time.Duration) ([]record, error) {
	before := -1
	since := time.Now()
	for {
		records, err := l.records(ctx)
		if err != nil {
			return nil, err
		}
		if len(records) != before {
			before, since = len(records), time.Now()
		} else if time.Since(since) >= silence {
			return records, nil
		}
		if err := pause(ctx, silence/4); err != nil {
			return nil, err
		}
	}
}

func tail(file string) string {
	content, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(content)), "\n")
	return strings.Join(lines[max(0, len(lines)-15):], "\n")
}
