package checkpoint_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pglogrepl"

	"github.com/walpost/walpost/checkpoint"
	"github.com/walpost/walpost/internal/testkit"
)

// twoStores are an instance and its successor, of the same slot.
func twoStores(t *testing.T) (dsn string, old, successor *checkpoint.Store) {
	t.Helper()
	dsn = testkit.Postgres(t, 0).NewDB(t)
	testkit.Exec(t, dsn, append([]string{"create schema walpost"}, checkpoint.Statements()...)...)
	return dsn, newStore(t, dsn, "orders"), newStore(t, dsn, "orders")
}

// at is a checkpoint with one partition of topic t.
func at(lsn, partition, offset int) checkpoint.Checkpoint {
	return checkpoint.Checkpoint{
		SystemID: "7000", Timeline: 1, LSN: pglogrepl.LSN(lsn), KafkaCluster: "k",
		Offsets: map[checkpoint.Partition]int64{{Topic: "t", Number: int32(partition)}: int64(offset)},
	}
}

// A predecessor that does not know yet that it is one changes nothing, neither
// what was there nor what was not.
func TestClaimEndsTheSavesOfThePredecessor(t *testing.T) {
	t.Parallel()
	dsn, old, successor := twoStores(t)
	claim(t, old, "old-1")
	if err := old.Save(t.Context(), at(0x100, 0, 10), false); err != nil {
		t.Fatal(err)
	}
	want := at(0x100, 0, 10)
	if diff := cmp.Diff(&want, claim(t, successor, "new-1")); diff != "" {
		t.Errorf("the successor claims (-want +got):\n%s", diff)
	}
	for _, c := range []checkpoint.Checkpoint{at(0x200, 1, 5), at(0x200, 0, 11), {SystemID: "7000", LSN: 0x200}} {
		for _, fresh := range []bool{false, true} {
			err := old.Save(t.Context(), c, fresh)
			if !errors.Is(err, checkpoint.ErrSucceeded) || !strings.Contains(err.Error(), "new-1 has claimed it as number 2, after our 1") {
				t.Errorf("the predecessor saves %+v: %v", c, err)
			}
		}
	}
	if diff := cmp.Diff(&want, load(t, successor)); diff != "" {
		t.Errorf("afterwards (-want +got):\n%s", diff)
	}
	if err := successor.Save(t.Context(), at(0x300, 1, 7), false); err != nil {
		t.Errorf("the successor saves: %v", err)
	}
	if err := newStore(t, dsn, "orders").Save(t.Context(), at(0x400, 2, 7), false); !errors.Is(err, checkpoint.ErrSucceeded) {
		t.Errorf("a store that has claimed nothing saves: %v", err)
	}
	testkit.Exec(t, dsn, "delete from walpost.checkpoint")
	if err := successor.Save(t.Context(), at(0x400, 1, 9), false); !errors.Is(err, checkpoint.ErrSucceeded) || !strings.Contains(err.Error(), "gone") {
		t.Errorf("without the row: %v", err)
	}
}

// TestSaveAgainstClaim: whatever a predecessor could save, its successor has
// read; nothing slips in between. Both orders of every pair are possible, and
// each has to come.
func TestSaveAgainstClaim(t *testing.T) {
	t.Parallel()
	_, one, two := twoStores(t)
	claim(t, one, "one")
	saved, refused := 0, 0
	for n := 1; n <= 2000 && (saved < 20 || refused < 20); n++ {
		old, successor := one, two
		if n%2 == 0 {
			old, successor = two, one
		}
		var race sync.WaitGroup
		var err error
		race.Go(func() { err = old.Save(t.Context(), at(n, n, n), false) })
		c, claimErr := successor.Claim(t.Context(), checkpoint.Checkpoint{}, fmt.Sprint(n))
		race.Wait()
		if claimErr != nil {
			t.Fatal(claimErr)
		}
		_, known := c.Offsets[checkpoint.Partition{Topic: "t", Number: int32(n)}]
		switch {
		case err == nil:
			saved++
		case errors.Is(err, checkpoint.ErrSucceeded):
			refused++
		default:
			t.Fatal(err)
		}
		if known != (err == nil) {
			t.Fatalf("the predecessor's save ended with %v, and the successor knows of it: %v", err, known)
		}
		if after := load(t, successor); len(after.Offsets) != saved {
			t.Fatalf("%d partitions are stored, %d were saved", len(after.Offsets), saved)
		}
	}
	if saved < 20 || refused < 20 {
		t.Errorf("%d saves came before the claim, %d behind it", saved, refused)
	}
}

// TestSaveWaitsForAClaim is the narrowest order: the save has begun, and seen the
// old epoch, when the claim is committed.
func TestSaveWaitsForAClaim(t *testing.T) {
	t.Parallel()
	dsn, old, _ := twoStores(t)
	claim(t, old, "old")
	successor := testkit.Connect(t, dsn)
	tx, err := successor.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), "update walpost.checkpoint set epoch = epoch + 1, owner = 'new'"); err != nil {
		t.Fatal(err)
	}
	saved := make(chan error, 1)
	go func() { saved <- old.Save(t.Context(), at(0x100, 3, 1), false) }()
	watch := testkit.Connect(t, dsn)
	testkit.Await(t, "a save that waits for the row", func() bool {
		var n int
		err := watch.QueryRow(t.Context(), `select count(*) from pg_stat_activity
			where datname = current_database() and wait_event_type = 'Lock' and query like '%checkpoint_offset%'`).Scan(&n)
		return err == nil && n == 1
	})
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := testkit.Receive(t, "the end of the save", saved); !errors.Is(err, checkpoint.ErrSucceeded) {
		t.Errorf("saved: %v", err)
	}
	if c := load(t, old); len(c.Offsets) != 0 || c.LSN != 0 {
		t.Errorf("it wrote %+v", c)
	}
}

// Tables of an older release are as good as none, until they are upgraded; what
// is in them stays.
func TestStoreOfAnOlderRelease(t *testing.T) {
	t.Parallel()
	dsn, s, _ := twoStores(t)
	testkit.Exec(t, dsn, "alter table walpost.checkpoint drop column owner, drop column epoch",
		"insert into walpost.checkpoint values ('orders', '7000', 1, '0/100', 'k')",
		"insert into walpost.checkpoint_offset values ('orders', 't', 0, 10)")
	if _, err := s.Claim(t.Context(), checkpoint.Checkpoint{}, "new"); !errors.Is(err, checkpoint.ErrNoStore) || !strings.Contains(err.Error(), "owner") {
		t.Errorf("claim: %v", err)
	}
	want := at(0x100, 0, 10)
	if diff := cmp.Diff(&want, load(t, s)); diff != "" {
		t.Errorf("before (-want +got):\n%s", diff)
	}
	for range 2 {
		testkit.Exec(t, dsn, checkpoint.Upgrade()...)
	}
	if diff := cmp.Diff(&want, claim(t, s, "new")); diff != "" {
		t.Errorf("after (-want +got):\n%s", diff)
	}
}
