package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// scenario is one way to break a relay.
type scenario struct {
	name     string
	what     string
	settings map[string]string // of the server
	free     []string          // aggregate types, each with a topic of one partition
	held     []string          // those whose topics take nothing until they are released
	own      bool              // judges by itself, without settle
	run      func(ctx context.Context, r *rig) error
}

// catalogue is all of them.
func catalogue() []scenario {
	return slices.Concat(orderScenarios(), positionScenarios(), serverScenarios(), contentScenarios())
}

// try runs a scenario and judges it. An error means that the kit could not.
func (k *kit) try(ctx context.Context, s scenario) (f finding, err error) {
	began := time.Now()
	r, err := newRig(ctx, k, s)
	if r != nil {
		defer func() {
			bad := err != nil || f.failed(k.atLeastOnce)
			if bad && r.relay != nil {
				k.log("%s: the relay's last words:\n%s", s.name, r.relay.tail())
			}
			if k.keep {
				k.log("%s: the relay's folder is %s", s.name, r.dir)
			}
			err = errors.Join(err, r.close(k.keep))
		}()
	}
	if err != nil {
		return f, fmt.Errorf("%s: prepare: %w", s.name, err)
	}
	err = s.run(ctx, r)
	if err == nil && !s.own {
		err = r.settle(ctx)
	}
	if err != nil && !errors.Is(err, errStuck) {
		return f, fmt.Errorf("%s: %w", s.name, err)
	}
	if f, err = r.conclude(ctx); err != nil {
		return f, fmt.Errorf("%s: %w", s.name, err)
	}
	k.log("%s took %.1f s", s.name, time.Since(began).Seconds())
	return f, nil
}

// conclude is the judge's word with what the scenario itself has found.
func (r *rig) conclude(ctx context.Context) (finding, error) {
	records, err := r.records(ctx)
	if err != nil {
		return finding{}, err
	}
	f := r.found
	f.judge(r.ledger.all(), records)
	odd := r.recorder.oddities()
	for _, kind := range slices.Sorted(maps.Keys(odd)) {
		f.notes = append(f.notes, fmt.Sprintf("confirmed %s %d times", kind, odd[kind]))
	}
	if n, why := r.relay.ends(); n > 0 {
		f.notes = append(f.notes, fmt.Sprintf("the relay ended by itself %d times, last: %s", n, why))
	}
	return f, nil
}

// steps runs one after the other until one fails.
func steps(all ...func() error) error {
	for _, f := range all {
		if err := f(); err != nil {
			return err
		}
	}
	return nil
}
