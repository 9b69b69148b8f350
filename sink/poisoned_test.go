//go:build poison

package sink

import (
	"bytes"
	"testing"

	"github.com/walpost/walpost/internal/poison"
)

// TestReleasedRecordsAreOverwritten proves that the mode does what the tests
// that run in it rely on.
func TestReleasedRecordsAreOverwritten(t *testing.T) {
	t.Parallel()
	var p pool
	var q queue
	r := &Record{Key: []byte("key"), Value: bytes.Repeat([]byte("v"), 1500)}
	for range 5 { // two fit a block
		q.append(&p, r, bodySize(r))
	}
	c := q.first()
	_, first := c.next()
	_, second := c.next()
	if !bytes.Contains(first, r.Value) || !bytes.Contains(second, r.Value) {
		t.Fatal("the records are not in the queue")
	}
	c = q.first()
	_, _ = c.next()
	q.release(&p, c, 1, len(first))
	if want := bytes.Repeat([]byte{poison.Value}, len(first)); !bytes.Equal(first, want) {
		t.Error("the released record is still there")
	}
	if !bytes.Contains(second, r.Value) {
		t.Error("the record behind it is gone")
	}
	_, _ = c.next()
	_, third := c.next()
	q.release(&p, c, 2, len(second)+len(third))
	if !bytes.Equal(second, bytes.Repeat([]byte{poison.Value}, len(second))) {
		t.Error("the released block still has its record")
	}
	c = q.first()
	for range 2 {
		if _, body := c.next(); !bytes.Contains(body, r.Value) {
			t.Error("a queued record was overwritten")
		}
	}
}
