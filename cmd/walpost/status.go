package main

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/walpost/walpost/internal/cli"
	"github.com/walpost/walpost/internal/config"
	"github.com/walpost/walpost/internal/pg"
	"github.com/walpost/walpost/slot"
)

func newStatusCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "status [flags]",
		Short: "Show slot, lag and publication on one screen",
		Long: `status shows what PostgreSQL says of the slot and the publication, and what the
running instance says of itself when one answers at admin.listen. What only the
instance knows is unknown without it, and the output says so.

  relay        what the instance does
  slot         who streams from it, and how much WAL it holds back
  watermark    everything before it is delivered; lag is what has been written since
  publication  whether it publishes the outbox tables

Exit code 3 means that there are problems; each is a line with a hint on stderr.
With -o json names and units stay: bytes, seconds, LSNs as text, UTC; null is
what is not known.`,
		Example: `  walpost status
  walpost status --slot orders -o json | jq .slot.retained_bytes
  walpost status >/dev/null || echo "look at the outbox"`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.status(cmd) },
	}
	config.AddFlags(cmd.Flags(), func(o *config.Option) bool { return o.Name == "admin.listen" })
	return cmd
}

func (a *app) status(cmd *cobra.Command) error {
	cfg, err := a.load(cmd, config.NeedPostgres)
	if err != nil {
		return err
	}
	conn, err := pg.ParseDSN(cfg.Postgres.DSN)
	if err != nil {
		return setupExit(err)
	}
	s, err := a.lookAt(cmd.Context(), conn, cfg)
	if err != nil {
		return setupExit(err)
	}
	s.live = fetchLive(cmd.Context(), cfg.Admin.Listen, cfg.Postgres.Slot)
	if a.json() {
		err = cli.WriteJSON(a.stdout, s.report())
	} else {
		err = s.print(a.stdout)
	}
	if err != nil {
		return err
	}
	if problems := s.problems(); len(problems) > 0 {
		return &cli.Exit{Code: cli.Findings, Err: problems}
	}
	return nil
}

// statusView is everything that status shows.
type statusView struct {
	cfg            *config.Config
	at             time.Time
	info           *slot.Info
	slotErr        error // the slot is not what the relay needs
	published      *slot.Published
	publicationErr error
	live           *liveStatus // nil: no instance answered
}

// lookAt asks PostgreSQL. Its error means that there was no answer.
func (a *app) lookAt(ctx context.Context, cfg *pgx.ConnConfig, c *config.Config) (*statusView, error) {
	conn, err := pg.Connect(ctx, cfg, "walpost/"+c.Postgres.Slot+"/status")
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	s := &statusView{cfg: c}
	if s.info, err = slot.Inspect(ctx, conn, c.Postgres.Slot); err != nil {
		return nil, err
	}
	s.at = s.info.ServerTime.UTC()
	s.slotErr = slot.CheckSlot(s.info, cfg.Database)
	tables, err := a.tables(ctx, conn, c)
	if err == nil {
		s.published, err = slot.CheckPublication(ctx, conn, c.Postgres.Publication, tables)
	}
	if _, definite := errors.AsType[*slot.Error](err); err != nil && !definite {
		return nil, err
	}
	s.publicationErr = err
	return s, nil
}

// problem is a finding with what to do about it.
type problem struct{ text, way string }

func (p *problem) Error() string { return p.text }
func (p *problem) Hint() string  { return p.way }

// problems are printed one after the other.
type problems []error

func (ps problems) Error() string   { return errors.Join(ps...).Error() }
func (ps problems) Errors() []error { return ps }

// problems lists what somebody should do something about.
func (s *statusView) problems() problems {
	var list problems
	if s.slotErr != nil {
		list = append(list, s.slotErr)
	}
	if s.publicationErr != nil {
		list = append(list, s.publicationErr)
	}
	if s.slotErr == nil && !s.info.Active {
		way := `start "walpost run"; if it runs, its log says why it does not stream`
		if s.live != nil {
			way = "the instance that answers says why it does not stream, here or in its log"
		}
		list = append(list, &problem{"slot \"" + s.info.Name + "\" is not active: nothing is relayed, and the WAL it holds grows", way})
	}
	if s.info.WALStatus == "unreserved" {
		list = append(list, &problem{
			"slot \"" + s.info.Name + "\" holds more WAL than max_slot_wal_keep_size allows, and may be lost at the next checkpoint",
			"raise max_slot_wal_keep_size and reload the server, then let the relay catch up",
		})
	}
	if s.live != nil {
		for _, p := range s.live.problems() {
			if !slices.ContainsFunc(list, func(said error) bool { return strings.Contains(p.Error(), said.Error()) }) {
				list = append(list, p)
			}
		}
	}
	return list
}
