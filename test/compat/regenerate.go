package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
)

// placeholder stands for a run's id in a file, so that recording anew changes
// nothing that has not changed.
const placeholder = "00000000-0000-7000-8000-000000000000"

// runRegenerate runs the inputs of corpora through Debezium.
func (o *options) runRegenerate(ctx context.Context, dir string) (err error) {
	all, err := loadAll(o.regenerate, o.selected())
	if err != nil {
		return err
	}
	s, err := startServers(ctx, o.pg, 1, o.log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	p, err := startPeer(ctx, s, s.lanes[0], o.home, filepath.Join(dir, "debezium"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close(context.WithoutCancel(ctx))) }()
	p.thorough = true
	for _, c := range all {
		recorded, err := p.run(ctx, c)
		if err != nil {
			return fmt.Errorf("corpus %s: %w", c.name, err)
		}
		if err := recorded.save(o.out); err != nil {
			return err
		}
		fmt.Printf("%-28s %s, %d records\n", c.name, recorded.outcome.State, len(recorded.records))
	}
	return nil
}
