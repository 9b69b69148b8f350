package setup

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/walpost/walpost/internal/testkit/pgserver"
)

// Tables of an older release get what has come since, and keep what is in them.
func TestRunUpgradesTheCheckpoint(t *testing.T) {
	t.Parallel()
	onServers(t, nil, func(t *testing.T, s setup) {
		s.database(t, "app")
		cfg := s.config(t, "app", pgserver.Superuser)
		opt := options("orders")
		opt.Checkpoint = true
		if _, err := Run(t.Context(), cfg, opt); err != nil {
			t.Fatal(twoLines(err))
		}
		s.exec(t, "app", "alter table walpost.checkpoint drop column owner, drop column epoch",
			"insert into walpost.checkpoint values ('orders', '7000', 1, '0/100', 'k')")
		for _, state := range []State{Upgraded, Unchanged} {
			r, err := Run(t.Context(), cfg, opt)
			if err != nil {
				t.Fatal(twoLines(err))
			}
			want := []string{"table public.outbox_events unchanged", "publication orders unchanged", "checkpoint walpost.checkpoint " + string(state), "slot orders unchanged"}
			if diff := cmp.Diff(want, states(r)); diff != "" {
				t.Error(diff)
			}
		}
		s.exec(t, "app", "do $$ begin assert (select epoch = 0 and owner = '' and lsn = '0/100' from walpost.checkpoint); end $$")
	})
}
