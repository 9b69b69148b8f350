package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/walpost/walpost/internal/testkit"
	"github.com/walpost/walpost/internal/testkit/debezium"
	"github.com/walpost/walpost/internal/testkit/kafkaserver"
)

// peer runs corpora through Debezium, in one worker.
type peer struct {
	servers *servers
	lane    *lane // the worker's Kafka
	java    int
	// thorough waits longer for a task to fail: where the producer fails, the task
	// does so only seconds later.
	thorough bool
	// others says how many records there should be, when that is known; nil: it is
	// not. Less than that may be for want of time.
	others  <-chan int
	process *debezium.Process
	keeper  *database
}

// silence is how long no record may come before a run of Debezium is over: it does
// not say when it has sent everything.
const (
	silence     = 2 * time.Second
	lateFailure = 4 * time.Second
	lateRecords = 20 * time.Second
)

// startPeer starts the worker, with a connector that has nothing to do: a worker
// does not start without one, and others come and go by its REST interface.
func startPeer(ctx context.Context, s *servers, l *lane, home, dir string) (_ *peer, err error) {
	p := &peer{servers: s, lane: l}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.close(context.WithoutCancel(ctx)))
		}
	}()
	if p.java, err = javaVersion(ctx); err != nil {
		return nil, err
	}
	if p.keeper, err = s.newDatabase(ctx); err != nil {
		return nil, err
	}
	err = p.keeper.execute(ctx, "create table idle (id int primary key); create publication idle for table idle;"+
		"select pg_create_logical_replication_slot('"+p.keeper.slot+"', 'pgoutput')")
	if err != nil {
		return nil, err
	}
	config, err := debezium.Outbox(s.pg.DSN(p.keeper.name), p.keeper.slot, "idle", "public.idle")
	if err != nil {
		return nil, err
	}
	config["topic.prefix"] = "idle" // the JVM's beans are named by it
	p.process, err = debezium.Start(ctx, debezium.Options{
		Name: "idle", Connector: config, Brokers: l.brokers(), Dir: dir, Home: home, Heap: "768m", Log: s.log,
		Worker: map[string]string{"offset.flush.interval.ms": "1000"},
	})
	return p, err
}

// javaVersion is that of the JVM that the worker runs on.
func javaVersion(ctx context.Context) (int, error) {
	java, err := kafkaserver.FindJava()
	if err != nil {
		return 0, err
	}
	out, err := exec.CommandContext(ctx, java, "-version").CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("%s -version: %w", java, err)
	}
	found := regexp.MustCompile(`version "(\d+)`).FindSubmatch(out)
	if found == nil {
		return 0, fmt.Errorf("%s -version says no version: %s", java, out)
	}
	return strconv.Atoi(string(found[1]))
}

func (p *peer) close(ctx context.Context) error {
	var err error
	if p.process != nil {
		err = p.process.Close()
	}
	if p.keeper != nil {
		err = errors.Join(err, p.keeper.drop(ctx))
	}
	return err
}

// run runs the inputs of a corpus, and gives what came of them as one.
func (p *peer) run(ctx context.Context, in *corpus) (_ *corpus, err error) {
	if err := p.lane.clear(ctx); err != nil {
		return nil, err
	}
	d, err := p.servers.newDatabase(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.drop(context.WithoutCancel(ctx))) }()
	if err := d.execute(ctx, in.table); err != nil {
		return nil, fmt.Errorf("%s: %w", partTable, err)
	}
	c := *in
	c.records = nil
	c.outcome = outcome{Java: p.java}
	// Offsets are kept by name.
	name := testkit.Unique("compat")
	if rejected, err := p.create(ctx, name, d.rewritten(in.connector.Config)); err != nil || rejected != "" {
		c.outcome.State, c.outcome.Message = stateRejected, rejected
		return &c, err
	}
	defer func() {
		err = errors.Join(err, p.rest(context.WithoutCancel(ctx), http.MethodDelete, "/"+name, nil, nil))
	}()
	failed := false
	reading := func(cond func() (bool, error)) func() (bool, error) {
		return func() (bool, error) {
			if state, _, err := p.status(ctx, name); err == nil && state == debezium.StateFailed {
				failed = true
			}
			if failed {
				return true, nil
			}
			return cond()
		}
	}
	err = await(ctx, patience, "Debezium to read its slot", reading(func() (bool, error) { return d.streaming(ctx) }))
	if err != nil {
		return nil, err
	}
	if err := d.execute(ctx, in.rows); err != nil {
		return nil, fmt.Errorf("%s: %w", partRows, err)
	}
	end, err := d.end(ctx)
	if err != nil {
		return nil, err
	}
	err = await(ctx, patience, "PostgreSQL to send everything to Debezium", reading(func() (bool, error) { return d.sent(ctx, end) }))
	if err != nil {
		return nil, err
	}
	if c.records, err = p.lane.quiet(ctx, silence); err != nil {
		return nil, err
	}
	if p.others != nil {
		select {
		case n := <-p.others:
			for late := time.Now().Add(lateRecords); len(c.records) < n && time.Now().Before(late); {
				if c.records, err = p.lane.quiet(ctx, silence); err != nil {
					return nil, err
				}
			}
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	for i := range c.records {
		r := &c.records[i]
		r.Value = renamed(r.Value, d.name, in.connector.Config["database.dbname"])
	}
	if p.thorough && !failed {
		began := time.Now()
		err = await(ctx, patience, "a failure", reading(func() (bool, error) { return time.Since(began) > lateFailure, nil }))
		if err != nil {
			return nil, err
		}
	}
	state, trace, err := p.status(ctx, name)
	c.outcome.State, c.outcome.Message, c.outcome.Records = state, errorLines(trace), len(c.records)
	for i, isClock := range clocks(&c) {
		if isClock {
			c.records[i].Timestamp = clockTime
		}
	}
	return &c, err
}

// create creates a connector; rejected is what Connect's validation says.
func (p *peer) create(ctx context.Context, name string, config map[string]string) (rejected string, err error) {
	config = maps.Clone(config)
	config["name"] = name
	err = p.rest(ctx, http.MethodPost, "", connectorFile{name, config}, nil)
	var refusal *restError
	if errors.As(err, &refusal) && refusal.status == http.StatusBadRequest {
		return refusal.message, nil
	}
	return "", err
}

func (p *peer) status(ctx context.Context, name string) (state, trace string, err error) {
	type part struct{ State, Trace string }
	var body struct {
		Connector part
		Tasks     []part
	}
	if err := p.rest(ctx, http.MethodGet, "/"+url.PathEscape(name)+"/status", nil, &body); err != nil {
		return "", "", err
	}
	if len(body.Tasks) == 0 || body.Connector.State == debezium.StateFailed {
		return body.Connector.State, body.Connector.Trace, nil
	}
	return body.Tasks[0].State, body.Tasks[0].Trace, nil
}

var errorLine = regexp.MustCompile(`^(Caused by: )?[a-z]+(\.[A-Za-z$]+)+(Exception|Error)`)

// errorLines are the message of a stack trace and its causes.
func errorLines(trace string) string {
	var lines []string
	for line := range strings.Lines(trace) {
		if errorLine.MatchString(line) {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return strings.Join(lines, "\n")
}

// restError is an answer of Connect's that is no success.
type restError struct {
	status  int
	message string
}

func (e *restError) Error() string { return fmt.Sprintf("Connect answers %d: %s", e.status, e.message) }

// rest asks Connect about connectors.
func (p *peer) rest(ctx context.Context, method, path string, body, into any) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	content, err := json.Marshal(body)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, method, p.process.URL()+"/connectors"+path, bytes.NewReader(content))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Close = true
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if content, err = io.ReadAll(response.Body); err != nil {
		return err
	}
	if response.StatusCode >= 300 {
		var said struct{ Message string }
		_ = json.Unmarshal(content, &said)
		return &restError{response.StatusCode, said.Message}
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(content, into)
}
