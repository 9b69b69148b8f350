package checkpoint_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/walpost/walpost/checkpoint"
	"github.com/walpost/walpost/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

func newStore(t *testing.T, dsn, slot string) *checkpoint.Store {
	t.Helper()
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	s := checkpoint.NewStore(config, slot, "walpost/test")
	t.Cleanup(func() { s.Close(t.Context()) })
	return s
}

func load(t *testing.T, s *checkpoint.Store) *checkpoint.Checkpoint {
	t.Helper()
	c, err := s.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// claim takes the checkpoint for a database cluster 7000 and a Kafka cluster k.
func claim(t *testing.T, s *checkpoint.Store, owner string) *checkpoint.Checkpoint {
	t.Helper()
	c, err := s.Claim(t.Context(), checkpoint.Checkpoint{SystemID: "7000", Timeline: 1, KafkaCluster: "k"}, owner)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestStoreKeepsTheNewest(t *testing.T) {
	t.Parallel()
	dsn := testkit.Postgres(t, 0).NewDB(t)
	testkit.Exec(t, dsn, append([]string{"create schema walpost"}, checkpoint.Statements()...)...)
	s, other := newStore(t, dsn, "orders"), newStore(t, dsn, "other")
	if c := load(t, s); c != nil {
		t.Fatalf("before the first Save: %+v", c)
	}
	a, b := checkpoint.Partition{Topic: "t", Number: 0}, checkpoint.Partition{Topic: "t", Number: 7}
	empty := &checkpoint.Checkpoint{SystemID: "7000", Timeline: 1, KafkaCluster: "k", Offsets: map[checkpoint.Partition]int64{}}
	if diff := cmp.Diff(empty, claim(t, s, "first")); diff != "" {
		t.Errorf("claimed (-want +got):\n%s", diff)
	}
	first := checkpoint.Checkpoint{
		SystemID: "7000", Timeline: 1, LSN: 0x200, KafkaCluster: "k", Offsets: map[checkpoint.Partition]int64{a: 10, b: 20},
	}
	for _, save := range []struct {
		name  string
		c     checkpoint.Checkpoint
		fresh bool
		want  checkpoint.Checkpoint
	}{
		{"first", first, false, first},
		{
			"older", checkpoint.Checkpoint{SystemID: "7000", Timeline: 1, LSN: 0x100, KafkaCluster: "k", Offsets: map[checkpoint.Partition]int64{a: 5}},
			false, first,
		},
		{
			"newer", checkpoint.Checkpoint{SystemID: "7000", Timeline: 2, LSN: 0x300, KafkaCluster: "k", Offsets: map[checkpoint.Partition]int64{b: 25}}, false,
			checkpoint.Checkpoint{SystemID: "7000", Timeline: 2, LSN: 0x300, KafkaCluster: "k", Offsets: map[checkpoint.Partition]int64{a: 10, b: 25}},
		},
		{
			"another history", checkpoint.Checkpoint{SystemID: "8000", Timeline: 1, LSN: 0x50, KafkaCluster: "k", Offsets: map[checkpoint.Partition]int64{a: 1}}, true,
			checkpoint.Checkpoint{SystemID: "8000", Timeline: 1, LSN: 0x50, KafkaCluster: "k", Offsets: map[checkpoint.Partition]int64{a: 1}},
		},
	} {
		if err := s.Save(t.Context(), save.c, save.fresh); err != nil {
			t.Fatalf("%s: %v", save.name, err)
		}
		if diff := cmp.Diff(&save.want, load(t, s)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", save.name, diff)
		}
	}
	if c := load(t, other); c != nil {
		t.Errorf("another slot's checkpoint: %+v", c)
	}
}

func TestStoreSaysThatItIsNotThere(t *testing.T) {
	t.Parallel()
	server := testkit.Postgres(t, 0)
	dsn := server.NewDB(t)
	s := newStore(t, dsn, "orders")
	if _, err := s.Load(t.Context()); !errors.Is(err, checkpoint.ErrNoStore) {
		t.Errorf("without the tables: %v", err)
	}
	testkit.Exec(t, dsn, append([]string{"create schema walpost"}, checkpoint.Statements()...)...)
	role := testkit.Unique("relay")
	testkit.Exec(t, dsn, "create role "+role+" login password 'x'",
		"alter role "+role+" set default_transaction_read_only = on")
	defer testkit.Exec(t, dsn, "drop owned by "+role, "drop role "+role)
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	denied := newStore(t, server.DSNAs(config.Database, role, "x"), "orders")
	if _, err := denied.Load(t.Context()); !errors.Is(err, checkpoint.ErrNoStore) {
		t.Errorf("without the right: %v", err)
	}
	testkit.Exec(t, dsn, checkpoint.Grants(role)...)
	if _, err := denied.Claim(t.Context(), checkpoint.Checkpoint{SystemID: "1"}, "relay"); err != nil {
		t.Errorf("with the grants: %v", err)
	}
	p := checkpoint.Partition{Topic: "t"}
	for _, fresh := range []bool{false, true} {
		if err := denied.Save(t.Context(), checkpoint.Checkpoint{SystemID: "1", LSN: 1, Offsets: map[checkpoint.Partition]int64{p: 1}}, fresh); err != nil {
			t.Errorf("with the grants, fresh %v: %v", fresh, err)
		}
	}
}
