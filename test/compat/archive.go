package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A file holds the parts of a corpus one after the other, each after a line
// "-- name --". Such a line with another name is part of the text.

func loadFile(path string) (*corpus, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return parseFile(strings.TrimSuffix(filepath.Base(path), fileExt), content)
}

func parseFile(name string, content []byte) (*corpus, error) {
	found, err := split(content)
	if err != nil {
		return nil, err
	}
	c, err := fromParts(name, found)
	if err != nil {
		return nil, err
	}
	for line := range bytes.Lines(found[partRecords]) {
		var r compact
		if err := json.Unmarshal(line, &r); err != nil {
			return nil, fmt.Errorf("%s: %w", partRecords, err)
		}
		full, err := r.record()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", partRecords, err)
		}
		c.records = append(c.records, full)
	}
	if len(c.records) != c.outcome.Records {
		return nil, fmt.Errorf("%d records, and %s says %d", len(c.records), partOutcome, c.outcome.Records)
	}
	return c, nil
}

func split(content []byte) (map[string][]byte, error) {
	found := map[string][]byte{}
	part := ""
	for line := range bytes.Lines(content) {
		name, ok := strings.CutPrefix(strings.TrimRight(string(line), "\n"), "-- ")
		name, end := strings.CutSuffix(name, " --")
		if ok && end && slices.Contains(parts, name) {
			if found[name] != nil {
				return nil, fmt.Errorf("%s comes twice", name)
			}
			part, found[name] = name, []byte{}
			continue
		}
		if part == "" {
			return nil, fmt.Errorf("begins with %q: want a line such as -- %s --", line, partTable)
		}
		found[part] = append(found[part], line...)
	}
	for _, name := range parts {
		if found[name] == nil {
			return nil, fmt.Errorf("no line -- %s --", name)
		}
	}
	return found, nil
}

// file is a corpus in the form of one file.
func (c *corpus) file() ([]byte, error) {
	var out bytes.Buffer
	part := func(name, content string) {
		fmt.Fprintf(&out, "-- %s --\n%s", name, content)
		if content != "" && !strings.HasSuffix(content, "\n") {
			out.WriteByte('\n')
		}
	}
	connector, err := indented(c.connector)
	if err != nil {
		return nil, err
	}
	c.outcome.Records = len(c.records)
	result, err := indented(c.outcome)
	if err != nil {
		return nil, err
	}
	part(partTable, c.table)
	part(partRows, c.rows)
	part(partConnector, connector)
	part(partOutcome, result)
	part(partRecords, "")
	for i := range c.records {
		r := c.records[i]
		r.Headers = slices.Clone(r.Headers)
		for j, h := range r.Headers {
			if _, ok := runTime(&record{Headers: []header{h}}); ok && h.name == runID {
				r.Headers[j].value = bytes.Replace(h.value, unquoted(h.value), []byte(placeholder), 1)
			}
		}
		line, err := plainJSON(r.compact(r.Timestamp == clockTime))
		if err != nil {
			return nil, err
		}
		out.Write(line)
		out.WriteByte('\n')
	}
	return out.Bytes(), nil
}

func indented(v any) (string, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(v)
	return out.String(), err
}

func (c *corpus) save(dir string) error {
	content, err := c.file()
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, c.name+fileExt), content, 0o644)
}
