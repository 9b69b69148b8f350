package drill

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/spf13/pflag"

	"github.com/walpost/walpost/internal/config"
	"github.com/walpost/walpost/internal/pg"
	"github.com/walpost/walpost/internal/testkit"
	"github.com/walpost/walpost/internal/testkit/kafkaserver"
	"github.com/walpost/walpost/internal/testkit/pgserver"
	"github.com/walpost/walpost/outbox"
)

// confirmEarly is a relay that confirms what it has not published.
func confirmEarly(ctx context.Context, a *arena) error {
	if err := write(ctx, a.conn, a.name, 5, nil); err != nil {
		return err
	}
	_, err := a.await(ctx, 10*time.Second, func() (bool, error) {
		_, err := a.conn.Exec(ctx, "select pg_replication_slot_advance($1, pg_current_wal_lsn())", a.name)
		if pg.SQLState(err) == "55006" {
			return false, nil
		}
		return err == nil, err
	})
	return err
}

// effectOutside is a consumer whose side effect does not belong to the
// transaction, which fails once.
func effectOutside(a *arena, _ outbox.Handler) outbox.Handler {
	var mu sync.Mutex
	failed := map[uuid.UUID]bool{}
	return func(ctx context.Context, _ pgx.Tx, m outbox.Message) error {
		mu.Lock()
		defer mu.Unlock()
		conn, err := pg.Connect(ctx, a.opt.Conn, application)
		if err != nil {
			return err
		}
		defer func() { _ = conn.Close(ctx) }()
		if _, err := conn.Exec(ctx, "insert into "+a.table("effects")+" (event_id, aggregate_id, version) values ($1, $2, $3)",
			m.ID.String(), m.AggregateID, m.Version); err != nil {
			return err
		}
		if len(failed) == 0 {
			failed[m.ID] = true
			return errors.New("failed after the side effect")
		}
		return nil
	}
}

// offsetFirst is a consumer that has committed the offset of an event whose effect
// never came.
func offsetFirst(_ *arena, h outbox.Handler) outbox.Handler {
	var lost sync.Once
	return func(ctx context.Context, tx pgx.Tx, m outbox.Message) (err error) {
		skipped := false
		lost.Do(func() { skipped = true })
		if !skipped {
			err = h(ctx, tx, m)
		}
		return err
	}
}

// publishUncommitted is a relay that publishes what no transaction has committed.
func publishUncommitted(ctx context.Context, a *arena) error {
	return a.broker.produce(ctx, []outbox.Message{outOfOrder(a.topic, 1)})
}

// reorder is a relay that publishes an aggregate's versions the wrong way round.
func reorder(ctx context.Context, a *arena) error {
	return a.broker.produce(ctx, []outbox.Message{outOfOrder(a.topic, 2), outOfOrder(a.topic, 1)})
}

// TestBrokenProductIsNoticed breaks what each drill guards.
func TestBrokenProductIsNoticed(t *testing.T) {
	t.Parallel()
	srv := testkit.PrivatePostgres(t, pgserver.Options{FsyncOff: true})
	cluster := testkit.PrivateKafka(t, kafkaserver.Options{})
	binary := filepath.Join(t.TempDir(), "walpost")
	testkit.Build(t, binary, "cmd/walpost")
	cfg, err := pg.ParseDSN(srv.DSN("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := config.Load(config.Sources{
		Flags:    pflag.NewFlagSet("", pflag.ContinueOnError),
		ReadFile: func(string) ([]byte, error) { return nil, fs.ErrNotExist },
		Environ:  []string{"WALPOST_DSN=" + srv.DSN("postgres"), "WALPOST_BROKERS=" + strings.Join(cluster.Addr(), ",")},
	})
	if err != nil {
		t.Fatal(err)
	}
	whole, err := json.Marshal(loaded)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		drill, must string
		tamper      tamper
	}{
		{"stop-service-after-commit", "every committed event is in the topic", tamper{beforeRelay: confirmEarly}},
		{"kill-relay-after-ack", "every committed event is in the topic", tamper{beforeRelay: confirmEarly}},
		{"stop-service-after-commit", "nothing else is in the topic", tamper{beforeRelay: publishUncommitted}},
		{"stop-service-after-commit", "events out of their aggregate's order", tamper{beforeRelay: reorder}},
		{"stop-service-after-commit", "committed events with exactly one side effect", tamper{handler: offsetFirst}},
		{"repeat-message", "events with more than one side effect", tamper{handler: effectOutside}},
	} {
		report, err := Run(t.Context(), test.drill, Options{
			Conn: cfg, Brokers: cluster.Addr(), Events: 20, Config: whole, patience: 5 * time.Second, tamper: test.tamper,
			Command: func(role string) (*exec.Cmd, error) { return exec.Command(binary, "drill", "drill-child", role), nil },
		})
		if err != nil {
			t.Errorf("%s: %v", test.drill, err)
			continue
		}
		if !slices.ContainsFunc(report.Checks, func(c Check) bool { return c.Must == test.must && !c.Held }) {
			t.Errorf("%s: %q held: %+v", test.drill, test.must, report.Checks)
		}
	}
	left, err := Leftovers(t.Context(), cfg)
	if err != nil || len(left) != 0 {
		t.Errorf("left %q, %v", left, err)
	}
}
