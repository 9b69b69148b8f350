package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

// both runs a configuration through the two at once.
type both struct {
	product *product
	peer    *peer
	lane    *lane // walpost's Kafka
}

func (b *both) run(ctx context.Context, in *corpus) (*corpus, *run, error) {
	var recorded *corpus
	var r *run
	in.outcome.Java = b.peer.java
	count := make(chan int, 1) // has the number of walpost's records, once
	b.peer.others = count
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		if recorded, err = b.peer.run(ctx, in); err != nil {
			return fmt.Errorf("run of Debezium: %w", err)
		}
		return nil
	})
	group.Go(func() (err error) {
		if r, err = b.product.run(ctx, b.lane, in); err != nil {
			return fmt.Errorf("run of walpost: %w", err)
		}
		count <- len(r.records)
		return nil
	})
	err := group.Wait()
	return recorded, r, err
}

func (o *options) runDifferential(ctx context.Context, dir string, out io.Writer) (failed int, err error) {
	s, err := startServers(ctx, o.pg, 2, o.log)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	p, err := startPeer(ctx, s, s.lanes[0], o.home, filepath.Join(dir, "debezium"))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, p.close(context.WithoutCancel(ctx))) }()
	return o.compareRandom(ctx, &both{&product{o.binary, s}, p, s.lanes[1]}, out)
}

// compareRandom prints a line for each configuration, and for one that differs both
// sides and what is left of it.
func (o *options) compareRandom(ctx context.Context, b *both, out io.Writer) (failed int, err error) {
	began := time.Now()
	total, tried := 0, 0
	for number := range o.configs {
		if o.names != "" && !slices.Contains(o.selected(), strconv.Itoa(number)) {
			continue
		}
		tried++
		g := generate(o.seed, number, o.rows)
		recorded, r, err := b.run(ctx, g.corpus())
		if ctx.Err() != nil {
			return failed, context.Cause(ctx)
		}
		if err != nil {
			failed++
			fmt.Fprintf(out, "DIFFERS  %-14s %v\n", g.name, err)
			continue
		}
		total += len(recorded.records)
		v := judge(recorded, r)
		if v.pass {
			fmt.Fprintf(out, "pass     %-14s %s, %s\n", g.name, recorded.outcome.State, v.how)
			continue
		}
		failed++
		fmt.Fprintf(out, "DIFFERS  %-14s %s\n", g.name, v.how)
		small, v := b.shrink(ctx, g, v, o.log)
		for i := range min(len(v.diffs), 3) {
			fmt.Fprintf(out, "  %s\n", &v.diffs[i])
		}
		fmt.Fprintf(out, "  with:\n%s", small)
	}
	fmt.Fprintf(out, "seed %d: %d configurations of %d rows, %d records of Debezium's, %d differ (%.0f s)\n",
		o.seed, tried, o.rows, total, failed, time.Since(began).Seconds())
	return failed, nil
}

// shrink makes a failing configuration smaller as long as it fails: to one row, and
// without what does not matter. It returns it as a file, with its verdict.
func (b *both) shrink(ctx context.Context, g *generated, v verdict, log func(string, ...any)) (string, verdict) {
	tries := 0
	smaller := func(change func(*generated)) bool {
		if tries++; tries > 40 || ctx.Err() != nil {
			return false
		}
		next := *g
		next.config = map[string]string{}
		for k, val := range g.config {
			next.config[k] = val
		}
		next.rows, next.places, next.columns = slices.Clone(g.rows), slices.Clone(g.places), slices.Clone(g.columns)
		change(&next)
		recorded, r, err := b.run(ctx, next.corpus())
		if err != nil {
			log("shrink: %v", err)
			return false
		}
		found := judge(recorded, r)
		if found.pass {
			return false
		}
		*g, v = next, found
		return true
	}
	for _, id := range suspects(v) {
		i := slices.IndexFunc(g.rows, func(r row) bool {
			return strings.Contains(id, r.id) || strings.Contains(id, strings.Replace(r.id, "100", "200", 1))
		})
		if i >= 0 && smaller(func(n *generated) { n.rows = n.rows[i : i+1] }) {
			break
		}
	}
	for n := len(g.rows) / 2; len(g.rows) > 1 && n > 0; {
		half := n
		if !smaller(func(x *generated) { x.rows = x.rows[:half] }) && !smaller(func(x *generated) { x.rows = x.rows[half:] }) {
			break
		}
		n = len(g.rows) / 2
	}
	for i := 0; i < len(g.places); {
		if !smaller(func(n *generated) { n.places = slices.Delete(n.places, i, i+1) }) {
			i++
		}
	}
	for _, key := range sortedKeys(g.config) {
		if strings.HasPrefix(key, routerPrefix) && !strings.Contains(key, ".field.event.") && key != routerPrefix+"type" && key != routerPrefix+"route.by.field" ||
			strings.Contains(key, ".mode") && !strings.Contains(key, "publication") && key != "snapshot.mode" || strings.Contains(key, "converter.") {
			smaller(func(n *generated) { delete(n.config, key) })
		}
	}
	c := g.corpus()
	connector, err := indented(c.connector.Config)
	if err != nil {
		connector = err.Error()
	}
	return c.table + c.rows + connector, v
}

// suspects are the event ids of the records that differ.
func suspects(v verdict) []string {
	var ids []string
	for _, d := range v.diffs {
		for _, r := range []*record{d.want, d.got} {
			if r != nil && !slices.Contains(ids, r.id()) && len(ids) < 3 {
				ids = append(ids, r.id())
			}
		}
	}
	return ids
}
