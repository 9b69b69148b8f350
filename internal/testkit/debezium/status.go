package debezium

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Task states in Connect's words.
const (
	StateRunning = "RUNNING"
	StateFailed  = "FAILED"
)

// Status is what the worker says about its connector's task.
type Status struct {
	State string // "" if there is no task yet
	Trace string // of a failure
}

// TaskError says that the task has failed; the worker still runs.
type TaskError struct{ Trace string }

func (e *TaskError) Error() string {
	line, _, _ := strings.Cut(e.Trace, "\n")
	return "the connector's task failed: " + line
}

// AwaitStreaming waits until the task reads from its slot. It returns a TaskError
// if the task fails.
//
// Connect says RUNNING seconds before the task has done anything, so the log line
// decides.
func (p *Process) AwaitStreaming(ctx context.Context) error {
	err := p.await(ctx, func() (bool, error) {
		if strings.Contains(p.logOfThisStart(), " Processing messages") {
			return true, nil
		}
		// Until the listener is open there is no answer.
		status, err := p.Status(ctx)
		if err == nil && status.State == StateFailed {
			return false, &TaskError{Trace: status.Trace}
		}
		return false, nil
	})
	if err != nil {
		return fmt.Errorf("wait for Debezium: %w", err)
	}
	return nil
}

// Status asks the worker.
func (p *Process) Status(ctx context.Context) (Status, error) {
	var body struct {
		Connector struct {
			State string `json:"state"`
			Trace string `json:"trace"`
		} `json:"connector"`
		Tasks []struct {
			State string `json:"state"`
			Trace string `json:"trace"`
		} `json:"tasks"`
	}
	if err := p.get(ctx, "/connectors/"+url.PathEscape(p.opts.Name)+"/status", &body); err != nil {
		return Status{}, fmt.Errorf("ask Connect for the task's state: %w", err)
	}
	if body.Connector.State == StateFailed {
		return Status{State: StateFailed, Trace: body.Connector.Trace}, nil
	}
	if len(body.Tasks) == 0 {
		return Status{}, nil
	}
	return Status{State: body.Tasks[0].State, Trace: body.Tasks[0].Trace}, nil
}

func (p *Process) get(ctx context.Context, path string, into any) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.URL()+path, nil)
	if err != nil {
		return err
	}
	request.Close = true // leaves no connection behind
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(response.Body, 1<<10))
		return fmt.Errorf("%s: %s", response.Status, text)
	}
	return json.NewDecoder(response.Body).Decode(into)
}

// URL returns the address of Connect's REST interface.
func (p *Process) URL() string { return fmt.Sprintf("http://127.0.0.1:%d", p.port.Number) }

// await repeats cond until it holds, the worker ends, or ctx does.
func (p *Process) await(ctx context.Context, cond func() (bool, error)) error {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	process := p.current()
	for {
		ok, err := cond()
		if ok || err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-process.Done():
			return fmt.Errorf("the worker has ended (%w):\n%s", process.Err(), p.LogTail())
		case <-ctx.Done():
			return fmt.Errorf("%w; the log ends with\n%s", context.Cause(ctx), p.LogTail())
		}
	}
}
