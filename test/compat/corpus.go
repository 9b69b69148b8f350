package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/uuid"
)

// corpus is a configuration with its table and rows, and what Debezium made of it.
type corpus struct {
	name      string
	table     string // SQL
	rows      string // SQL
	connector connectorFile
	outcome   outcome
	records   []record
}

type connectorFile struct {
	Name   string            `json:"name"`
	Config map[string]string `json:"config"`
}

// outcome is how the connector's task was at the end.
type outcome struct {
	State   string `json:"state"` // RUNNING, FAILED, or REJECTED by Connect's validation
	Message string `json:"message,omitempty"`
	Records int    `json:"records"`
	// Java is the version that it ran on, which can be seen in the text of some
	// numbers.
	Java int `json:"java,omitempty"`
}

const (
	stateRunning  = "RUNNING"
	stateRejected = "REJECTED"
)

const (
	// defaultJava is what corpora without a version were recorded on.
	defaultJava = 17
	// clockTime stands for a time that the connector's clock gave.
	clockTime = -1 << 62
	fileExt   = ".txt"
)

// The parts of a corpus, in the order in which one file holds them.
const (
	partTable     = "table.sql"
	partRows      = "rows.sql"
	partConnector = "connector.json"
	partOutcome   = "outcome.json"
	partRecords   = "records.jsonl"
)

var parts = []string{partTable, partRows, partConnector, partOutcome, partRecords}

// loadAll loads the named corpora of a folder, all without names, sorted.
func loadAll(dir string, names []string) ([]*corpus, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var all []*corpus
	for _, e := range entries {
		name := strings.TrimSuffix(e.Name(), fileExt)
		if len(names) > 0 && !slices.Contains(names, name) {
			continue
		}
		var c *corpus
		switch {
		case e.IsDir():
			c, err = loadFolder(filepath.Join(dir, e.Name()))
		case name != e.Name():
			c, err = loadFile(filepath.Join(dir, e.Name()))
		default:
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("corpus %s: %w", name, err)
		}
		all = append(all, c)
	}
	for _, name := range names {
		if !slices.ContainsFunc(all, func(c *corpus) bool { return c.name == name }) {
			return nil, fmt.Errorf("no corpus %s in %s", name, dir)
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("no corpus in %s: a corpus is a folder, or a file *%s, of %s", dir, fileExt, strings.Join(parts, ", "))
	}
	return all, nil
}

func loadFolder(dir string) (*corpus, error) {
	found := map[string][]byte{}
	for _, part := range parts {
		content, err := os.ReadFile(filepath.Join(dir, part))
		if errors.Is(err, os.ErrNotExist) && (part == partOutcome || part == partRecords) {
			continue // not recorded yet
		}
		if err != nil {
			return nil, err
		}
		found[part] = content
	}
	c, err := fromParts(filepath.Base(dir), found)
	if err != nil {
		return nil, err
	}
	for line := range bytes.Lines(found[partRecords]) {
		var r record
		if err := json.Unmarshal(line, &r); err != nil {
			return nil, fmt.Errorf("%s: %w", partRecords, err)
		}
		c.records = append(c.records, r)
	}
	sortRecords(c.records)
	for i, isClock := range clocks(c) {
		if isClock {
			c.records[i].Timestamp = clockTime
		}
	}
	return c, nil
}

func fromParts(name string, found map[string][]byte) (*corpus, error) {
	c := &corpus{name: name, table: string(found[partTable]), rows: string(found[partRows])}
	if err := json.Unmarshal(found[partConnector], &c.connector); err != nil {
		return nil, fmt.Errorf("%s: %w", partConnector, err)
	}
	if outcome := found[partOutcome]; outcome != nil {
		if err := json.Unmarshal(outcome, &c.outcome); err != nil {
			return nil, fmt.Errorf("%s: %w", partOutcome, err)
		}
	}
	if c.outcome.Java == 0 {
		c.outcome.Java = defaultJava
	}
	return c, nil
}

// clocks says which records bear the time of the connector's clock: all, unless
// a column gives the time; then those whose time is that of the run, which the
// run's id holds.
func clocks(c *corpus) []bool {
	clock := make([]bool, len(c.records))
	for i := range c.records {
		r := &c.records[i]
		began, ok := runTime(r)
		const longest = 10 * 60 * 1000
		clock[i] = c.timestampColumn() == "" || ok && r.Timestamp >= began && r.Timestamp < began+longest
	}
	return clock
}

const runID = "__debezium.context.runId"

// runTime is the time in a run's id, in milliseconds.
func runTime(r *record) (int64, bool) {
	value, _ := r.header(runID)
	id, err := uuid.ParseBytes(unquoted(value))
	if err != nil || id.Version() != 7 {
		return 0, false
	}
	var ms int64
	for _, b := range id[:6] {
		ms = ms<<8 | int64(b)
	}
	return ms, true
}

// option finds a router's option.
func (c *corpus) option(name string) string {
	for _, alias := range strings.Split(c.connector.Config["transforms"], ",") {
		if v, ok := c.connector.Config["transforms."+strings.TrimSpace(alias)+"."+name]; ok {
			return v
		}
	}
	return ""
}

func (c *corpus) timestampColumn() string { return c.option("table.field.event.timestamp") }

// partitioned says that a column can give the partition.
func (c *corpus) partitioned() bool {
	return strings.Contains(strings.ToLower(c.option("table.fields.additional.placement")), "partition")
}
