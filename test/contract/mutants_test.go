package contract

import (
	"strings"
	"testing"
)

// The oracle can fail: it notices each of these mistakes, at the place where it
// shows first.
func TestOracleNoticesMistakes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ mistake, want string }{
		{"outside-transaction", "rolled-back transactions have left events"},
		{"version-guessed", "versions are not dense"},
		{"offset-first", "killed in the middle of an effect: the offsets of 1 records are committed"},
		{"dedup-apart", "killed in the middle of an effect: 1 rows are in processed_events"},
		{"no-dedup", "two consumers at once: not every event has had its effect once"},
		{"gaps-ignored", "a stale event and a gap: after version 1 once more"},
	} {
		t.Run(c.mistake, func(t *testing.T) {
			t.Parallel()
			broken := examples[0].prepare(t)
			broken.env = append(broken.env, "BREAK="+c.mistake)
			err := oracle(t, broken, false)
			if err == nil {
				t.Fatal("not noticed")
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("noticed for another reason, want %q:\n%v", c.want, err)
			}
		})
	}
}
