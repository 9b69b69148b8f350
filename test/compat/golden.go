package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"golang.org/x/sync/errgroup"
)

// compareAll runs corpora through walpost, as many at a time as there are lanes,
// prints a line for each as it ends and a total, and says how many failed.
func compareAll(ctx context.Context, p *product, all []*corpus, verbose bool, out io.Writer) (failed int, err error) {
	began := time.Now()
	type result struct {
		corpus  *corpus
		verdict verdict
	}
	work := make(chan *corpus) // closed by the feeder
	results := make(chan result)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		defer close(work)
		for _, c := range all {
			select {
			case work <- c:
			case <-ctx.Done():
				return nil
			}
		}
		return nil
	})
	for _, l := range p.servers.lanes {
		group.Go(func() error {
			for c := range work {
				r, err := p.run(ctx, l, c)
				if ctx.Err() != nil {
					return context.Cause(ctx)
				}
				v := verdict{how: "no result"}
				if err != nil {
					v.how = err.Error()
				} else {
					v = judge(c, r)
				}
				results <- result{c, v}
			}
			return nil
		})
	}
	var waited error
	go func() { waited = group.Wait(); close(results) }()
	for r := range results {
		word := "pass   "
		if !r.verdict.pass {
			word = "DIFFERS"
			failed++
		}
		fmt.Fprintf(out, "%s  %-28s %s\n", word, r.corpus.name, r.verdict.how)
		if verbose && len(r.verdict.diffs) > 0 {
			fmt.Fprintf(out, "  %s\n", &r.verdict.diffs[0])
		}
	}
	if waited != nil {
		return failed, waited
	}
	fmt.Fprintf(out, "%d corpora: %d pass, %d differ (%.0f s)\n", len(all), len(all)-failed, failed, time.Since(began).Seconds())
	return failed, nil
}

// importAll writes corpora in our form.
func importAll(all []*corpus, into string) error {
	for _, c := range all {
		if err := c.save(into); err != nil {
			return fmt.Errorf("corpus %s: %w", c.name, err)
		}
	}
	return nil
}
