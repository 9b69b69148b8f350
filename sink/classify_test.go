package sink

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kerr"
)

func TestClassifyCodes(t *testing.T) {
	t.Parallel()
	want := map[Class][]int{
		Passing:   {3, 5, 6, 7, 8, 9, 13, 14, 15, 16, 19, 20, 41, 51, 56, 70, 71, 72, 74, 75, 77, 78, 80, 83, 89, 100, 103, 106},
		Poison:    {10, 18, 32, 87},
		Permanent: {2, 17, 29, 31, 33, 34, 35, 37, 38, 39, 40, 42, 43, 44, 45, 46, 48, 49, 53, 54, 55, 58, 59, 76},
		Fenced:    {47, 90},
		Unknown:   {-1, 1, 4, 12, 21, 22, 36, 52, 200, 32767},
	}
	for class, list := range want {
		for _, code := range list {
			bare := kafka.Error(code)
			for _, err := range []error{bare, fmt.Errorf("produce: %w", bare)} {
				if got := classify(err).class; got != class {
					t.Errorf("classify(%d as %T) = %v, want %v", code, err, got, class)
				}
			}
		}
	}
}

// TestI2UnknownOutcomes lists the answers after which a batch may be stored:
// after any of them only the same bytes may go again.
func TestI2UnknownOutcomes(t *testing.T) {
	t.Parallel()
	want := map[int]bool{-1: true, 3: true, 6: true, 7: true, 13: true, 20: true, 56: true, 200: true}
	for code := -1; code <= 130; code++ {
		if code == 0 {
			continue
		}
		_, known := codes[int16(code)]
		if got := classify(kafka.Error(code)).unknown; got != (want[code] || !known) {
			t.Errorf("code %d: outcome unknown = %v", code, got)
		}
	}
	definite := []error{
		kafka.BrokerNotAvailable, // the library does not know the leader
		&net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)},
		&net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", IsNotFound: true}},
	}
	for _, err := range definite {
		if classify(err).unknown {
			t.Errorf("%v: the request has not left, yet its outcome counts as unknown", err)
		}
	}
}

func TestClassifyTransport(t *testing.T) {
	t.Parallel()
	dial := func(err error) error { return &net.OpError{Op: "dial", Net: "tcp", Err: err} }
	read := func(err error) error { return &net.OpError{Op: "read", Net: "tcp", Err: err} }
	cases := []struct {
		err     error
		class   Class
		reason  string
		unknown bool
	}{
		{dial(os.NewSyscallError("connect", syscall.ECONNREFUSED)), Passing, "connection_refused", false},
		{dial(&net.DNSError{Err: "no such host", Name: "kafka", IsNotFound: true}), Passing, "dns", false},
		{read(os.NewSyscallError("read", syscall.ECONNRESET)), Passing, "connection", true},
		{read(os.ErrDeadlineExceeded), Passing, "connection", true},
		{&net.OpError{Op: "write", Err: os.NewSyscallError("write", syscall.EPIPE)}, Passing, "connection", true},
		{io.ErrUnexpectedEOF, Passing, "connection", true},
		{io.EOF, Passing, "connection", true},
		{context.DeadlineExceeded, Passing, "connection", true},
		{errors.New("something new"), Passing, "connection", true},
		{&tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}, Permanent, "tls", true},
		{x509.UnknownAuthorityError{}, Permanent, "tls", true},
		{x509.HostnameError{Certificate: &x509.Certificate{}, Host: "k"}, Permanent, "tls", true},
		{tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake"}, Permanent, "tls", true},
		{&net.OpError{Op: "remote error", Err: tls.AlertError(42)}, Permanent, "tls", true},
		{errors.New("unexpected EOF: broker appears to be expecting TLS"), Permanent, "tls", true},
		{kafka.SASLAuthenticationFailed, Permanent, "SASL_AUTHENTICATION_FAILED", false},
	}
	for _, c := range cases {
		for _, err := range []error{c.err, fmt.Errorf("metadata: %w", c.err)} {
			if v := classify(err); v.class != c.class || v.reason != c.reason || v.unknown != c.unknown {
				t.Errorf("classify(%v) = %v %s unknown=%v, want %v %s unknown=%v",
					err, v.class, v.reason, v.unknown, c.class, c.reason, c.unknown)
			}
		}
	}
}

func TestCodesHaveReasons(t *testing.T) {
	t.Parallel()
	seen := make(map[string]int16)
	for code, v := range codes {
		if v.class == 0 || v.reason == "" || v.reason != strings.ToUpper(v.reason) {
			t.Errorf("code %d: %+v", code, v)
		}
		if other, ok := seen[v.reason]; ok {
			t.Errorf("codes %d and %d share the reason %s", code, other, v.reason)
		}
		seen[v.reason] = code
		if (v.class == Poison || v.class == Fenced) && v.way == "" {
			t.Errorf("code %d: no hint", code)
		}
	}
}

// TestRetriableCodesPass: what Kafka's own clients try again, in whatever answer,
// is no reason for us to give up.
func TestRetriableCodesPass(t *testing.T) {
	t.Parallel()
	except := map[int16]string{
		2:   "a wrong checksum of what we send again as it is stays wrong",
		84:  "answers the election of a leader, which we never ask for",
		88:  "answers OffsetFetch, which we never ask for",
		133: "answers share groups",
	}
	retriable := 0
	for code := range int16(1000) {
		e := kerr.TypedErrorForCode(code)
		if e == nil || e.Code != code || !e.Retriable || except[code] != "" {
			continue
		}
		retriable++
		if v, ok := codes[code]; !ok || v.class != Passing || v.reason != e.Message && code != 6 { // 6 has a newer name
			t.Errorf("code %d, %s: %v %q; Kafka's clients retry it", code, e.Message, v.class, v.reason)
		}
	}
	if retriable < 20 {
		t.Errorf("only %d retriable codes: the test tests nothing", retriable)
	}
}

func TestDeliveryError(t *testing.T) {
	t.Parallel()
	for want, e := range map[string]DeliveryError{
		`kafka: tls: x`:                 {Partition: -1, Reason: "tls", Detail: "x"},
		`topic "t": REASON`:             {Topic: "t", Partition: -1, Reason: "REASON", Detail: "REASON"},
		`topic "t" partition 0: R: why`: {Topic: "t", Reason: "R", Detail: "why"},
	} {
		if got := e.Error(); got != want {
			t.Errorf("Error() = %q, want %q", got, want)
		}
	}
}

func TestBackoff(t *testing.T) {
	t.Parallel()
	usual := usualTiming()
	cases := []struct {
		class    Class
		attempts int
		top      time.Duration
	}{
		{Passing, 0, 50 * time.Millisecond},
		{Passing, 1, 50 * time.Millisecond},
		{Passing, 2, 100 * time.Millisecond},
		{Passing, 5, 800 * time.Millisecond},
		{Passing, 8, 5 * time.Second},
		{Passing, 1 << 30, 5 * time.Second},
		{Permanent, 1, 5 * time.Second},
		{Permanent, 1 << 30, time.Minute},
		{Unknown, 3, 20 * time.Second},
		{Fenced, 1, 5 * time.Second},
	}
	for _, c := range cases {
		for range 200 {
			if d := usual.backoff(c.class, c.attempts); d < c.top/2 || d > c.top {
				t.Fatalf("backoff(%v, %d) = %v, want between %v and %v", c.class, c.attempts, d, c.top/2, c.top)
			}
		}
	}
	if d := usual.backoff(Poison, 9); d != 30*time.Second {
		t.Errorf("backoff(poison) = %v, want the constant 30s", d)
	}
}
