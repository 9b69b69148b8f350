package kafkaserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"

	"github.com/walpost/walpost/internal/testkit/certs"
	"github.com/walpost/walpost/internal/testkit/proc"
	"github.com/walpost/walpost/internal/testkit/proxy"
)

// Cluster is a Kafka cluster: ours, or one that somebody else runs. Its methods
// may be called from any goroutine; brokers are numbered from 0.
type Cluster struct {
	source   string
	external []string // addresses of a cluster that is not ours
	opts     Options
	install  *install
	dir      *proc.Dir
	certs    *certs.Files
	brokers  []*broker
}

// ErrNotOurs says that a broker of somebody else cannot be stopped or started.
var ErrNotOurs = errors.New("not a cluster of this test run")

// External wraps a running cluster, which can then be used but not controlled.
func External(addrs []string, source string) *Cluster {
	return &Cluster{external: addrs, source: source}
}

// Start starts a cluster and returns when each broker knows all of them.
func Start(ctx context.Context, opts Options) (*Cluster, error) {
	if opts.Log == nil {
		opts.Log = func(string, ...any) {}
	}
	if opts.Brokers == 0 {
		opts.Brokers = 1
	}
	install, err := findInstall(ctx, opts.Log)
	if err != nil {
		return nil, fmt.Errorf("start Kafka: %w", err)
	}
	c, err := start(ctx, opts, install, nil)
	if err != nil {
		return nil, fmt.Errorf("start Kafka: %w", err)
	}
	opts.Log("%s, %d broker(s): %s", c, opts.Brokers, strings.Join(c.Addr(), ","))
	return c, nil
}

// start starts a cluster; jvm are options for its JVMs.
func start(ctx context.Context, opts Options, install *install, jvm []string) (*Cluster, error) {
	dir, err := proc.NewDir(ctx, "kafka")
	if err != nil {
		return nil, err
	}
	c := &Cluster{source: "Kafka " + Version + " from Maven artifacts", opts: opts, install: install, dir: dir}
	if err := c.prepare(jvm); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	if err := c.StartAgain(ctx); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

func (c *Cluster) prepare(jvm []string) error {
	if c.opts.TLS {
		files, err := certs.Write(c.dir.Path, User)
		if err != nil {
			return err
		}
		c.certs = files
	}
	cluster, err := newID()
	if err != nil {
		return err
	}
	for i := range c.opts.Brokers {
		b, err := c.newBroker(i, jvm)
		if err != nil {
			return err
		}
		c.brokers = append(c.brokers, b)
	}
	// Only now are the ports of all known.
	for _, b := range c.brokers {
		if err := os.WriteFile(b.config, []byte(c.properties(b)), 0o600); err != nil {
			return err
		}
		if err := c.install.format(b.data, cluster, b.id); err != nil {
			return err
		}
	}
	return nil
}

// String names version and source.
func (c *Cluster) String() string { return c.source }

// Len returns the number of brokers.
func (c *Cluster) Len() int { return len(c.Addr()) }

// Addr returns the bootstrap addresses of the plain listeners, of the proxies if
// there are any.
func (c *Cluster) Addr() []string {
	if c.external != nil {
		return c.external
	}
	addrs := c.addrs(plaintext)
	for i, b := range c.brokers {
		if b.proxy != nil {
			addrs[i] = b.proxy.Addr()
		}
	}
	return addrs
}

// DirectAddr returns addresses that lead around the proxies.
func (c *Cluster) DirectAddr() []string {
	if c.external != nil {
		return c.external
	}
	return c.addrs(replication)
}

// SASLAddr returns the addresses of the SASL_PLAINTEXT listeners.
func (c *Cluster) SASLAddr() []string { return c.addrs(saslPlaintext) }

// TLSAddr returns the addresses of the SSL listeners.
func (c *Cluster) TLSAddr() []string { return c.addrs(tlsOnly) }

// SASLTLSAddr returns the addresses of the SASL_SSL listeners.
func (c *Cluster) SASLTLSAddr() []string { return c.addrs(saslTLS) }

func (c *Cluster) addrs(l listener) []string {
	var addrs []string
	for _, b := range c.brokers {
		if b.ports[l] != nil {
			addrs = append(addrs, b.addr(l))
		}
	}
	return addrs
}

// CAFile returns the certificate authority of the TLS listeners.
func (c *Cluster) CAFile() string { return c.certs.CA }

// ClientCert returns the file of the client's certificate.
func (c *Cluster) ClientCert() string { return c.certs.ClientCert }

// ClientKey returns the file of the client's key.
func (c *Cluster) ClientKey() string { return c.certs.ClientKey }

// Proxy returns the proxy in front of a broker, nil if there is none.
func (c *Cluster) Proxy(i int) *proxy.Proxy {
	if c.external != nil {
		return nil
	}
	return c.brokers[i].proxy
}

// LogTail returns the last lines of a broker's log.
func (c *Cluster) LogTail(i int) string {
	if c.external != nil {
		return ErrNotOurs.Error()
	}
	return c.brokers[i].logTail()
}

// StartAgain starts those of the named brokers that do not run, all without
// names, on their old data and ports. It returns when every running broker knows
// these.
func (c *Cluster) StartAgain(ctx context.Context, which ...int) error {
	if c.external != nil {
		return ErrNotOurs
	}
	if len(which) == 0 {
		for i := range c.brokers {
			which = append(which, i)
		}
	}
	for _, i := range which {
		if err := c.brokers[i].start(); err != nil {
			return err
		}
	}
	return c.AwaitReady(ctx)
}

// Kill9 kills a broker with SIGKILL and returns when it is gone.
func (c *Cluster) Kill9(ctx context.Context, i int) error {
	if c.external != nil {
		return ErrNotOurs
	}
	return c.brokers[i].kill(ctx)
}

// Term stops a broker in an orderly way (SIGTERM) and returns when it is gone.
func (c *Cluster) Term(ctx context.Context, i int) error {
	if c.external != nil {
		return ErrNotOurs
	}
	return c.brokers[i].term(ctx)
}

// Pause freezes a broker; its connections stay open.
func (c *Cluster) Pause(i int) error {
	if c.external != nil {
		return ErrNotOurs
	}
	return c.brokers[i].pause()
}

// Resume lets a frozen broker go on.
func (c *Cluster) Resume(i int) error {
	if c.external != nil {
		return ErrNotOurs
	}
	return c.brokers[i].resume()
}

// Close kills all brokers and deletes their data. An external cluster is left
// alone.
func (c *Cluster) Close() error {
	if c.external != nil {
		return nil
	}
	var mu sync.Mutex
	var errs []error
	var all sync.WaitGroup
	for _, b := range c.brokers {
		all.Go(func() {
			if err := b.close(); err != nil {
				mu.Lock()
				errs = append(errs, err)
				mu.Unlock()
			}
		})
	}
	all.Wait()
	return errors.Join(append(errs, c.dir.Remove())...)
}
