package relay

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/walpost/walpost/checkpoint"
	"github.com/walpost/walpost/internal/pg"
	"github.com/walpost/walpost/sink"
	"github.com/walpost/walpost/slot"
)

// kafkaAnswer is an error code as the sink's client has it: it looks like an
// error of the network.
type kafkaAnswer struct{}

func (kafkaAnswer) Error() string   { return "[47] Invalid Producer Epoch" }
func (kafkaAnswer) Timeout() bool   { return false }
func (kafkaAnswer) Temporary() bool { return false }

// TestClassifyBlamesTheRightOne: what a person reads names the server that has
// the fault.
func TestClassifyBlamesTheRightOne(t *testing.T) {
	t.Parallel()
	refused := &pgconn.PgError{Code: "28P01", Message: "password authentication failed"}
	for _, test := range []struct {
		name   string
		err    error
		action action
		reason string
	}{
		{"none", nil, reconnect, "stream_ended"},
		{"fenced in the look at Kafka", fmt.Errorf("begin: %w", &sink.FencedError{TransactionalID: "walpost-1-a", Err: kafkaAnswer{}}), yield, "taken_over"},
		{"fenced by a delivery", &sink.DeliveryError{Class: sink.Fenced}, yield, "taken_over"},
		{"checkpoint claimed", &SucceededError{checkpoint.ErrSucceeded}, yield, "taken_over"},
		{"an answer of Kafka", &kafkaError{kafkaAnswer{}}, reconnect, "kafka_refuses"},
		{"Kafka's connection", &kafkaError{io.ErrUnexpectedEOF}, reconnect, "kafka_refuses"},
		{"PostgreSQL's connection", errStreamLost, reconnect, "postgres_unreachable"},
		{"password", fmt.Errorf("open: %w", pg.Describe(refused)), hold, "postgres_refuses"},
		{"statement", fmt.Errorf("inspect: %w", &pgconn.PgError{Code: "42883"}), hold, "postgres_refuses"},
		{"checkpoint without rights", fmt.Errorf("%w: %w", checkpoint.ErrNoStore, pg.Describe(&pgconn.PgError{Code: "42501"})), hold, "postgres_refuses"},
		{"slot in use", &slot.Error{Kind: slot.ErrInUse}, waitForSlot, "waiting_for_slot"},
		{"slot lost", &slot.Error{Kind: slot.ErrLost}, giveUp, "slot_lost"},
		{"of neither", errors.New("snapshot: public.orders is not a configured table"), hold, "unexpected"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if got := classify(test.err); got.action != test.action || got.reason != test.reason {
				t.Errorf("action %d, reason %q; want %d, %q", got.action, got.reason, test.action, test.reason)
			}
		})
	}
}

func TestKafkaErrorSaysWhatToDo(t *testing.T) {
	t.Parallel()
	cause := &sink.FencedError{Err: kafkaAnswer{}}
	for _, test := range []struct {
		err  error
		want string
	}{
		{&kafkaError{cause}, cause.Hint()},
		{&kafkaError{kafkaAnswer{}}, "check walpost's rights in Kafka: READ on the topics, WRITE on its TransactionalId"},
	} {
		if got := hint(test.err); got != test.want {
			t.Errorf("hint %q, want %q", got, test.want)
		}
	}
}
