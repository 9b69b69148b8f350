package sink

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/sasl"
	"github.com/segmentio/kafka-go/sasl/plain"
	"github.com/segmentio/kafka-go/sasl/scram"

	"github.com/walpost/walpost/internal/socket"
)

// Security of the connections to the brokers.
type Security struct {
	TLS       *tls.Config // nil: plaintext
	Mechanism string      // PLAIN, SCRAM-SHA-256, SCRAM-SHA-512; empty: no SASL
	Username  string
	Password  string
}

func (s *Security) transport() (*kafka.Transport, error) {
	t := &kafka.Transport{TLS: s.TLS}
	mechanism, err := s.SASL()
	if err != nil {
		return nil, err
	}
	t.SASL = mechanism
	return t, nil
}

// SASL is the mechanism in the client library's form, nil for none.
func (s *Security) SASL() (sasl.Mechanism, error) {
	switch s.Mechanism {
	case "":
		return nil, nil
	case "PLAIN":
		return plain.Mechanism{Username: s.Username, Password: s.Password}, nil
	case "SCRAM-SHA-256":
		return scram.Mechanism(scram.SHA256, s.Username, s.Password)
	case "SCRAM-SHA-512":
		return scram.Mechanism(scram.SHA512, s.Username, s.Password)
	default:
		return nil, fmt.Errorf("SASL mechanism %q: want PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512", s.Mechanism)
	}
}

// dialTimeout is for one address. The library tries several in one go.
const dialTimeout = 3 * time.Second

// dialer wraps what it dials: a request is one small write and one small read.
func dialer(dial func(ctx context.Context, network, addr string) (net.Conn, error)) func(context.Context, string, string) (net.Conn, error) {
	if dial == nil {
		dial = (&net.Dialer{Timeout: dialTimeout}).DialContext
	}
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return socket.Wrap(conn), nil
	}
}
