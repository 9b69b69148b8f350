package main

import (
	"slices"
	"strings"
	"testing"
)

const someRun = "01a234e3-4cb7-7222-8f89-7a73cad2ab3f"

// two records of a partition, one of another, and two without key.
func sampleRecords() []record {
	make := func(partition int, key, id string) record {
		r := record{
			Topic: "t", Partition: partition, Timestamp: clockTime, Value: []byte("v" + id),
			Headers: []header{{runID, []byte(someRun)}, {"id", []byte(id)}, {"type", nil}},
		}
		if key != "" {
			r.Key = []byte(key)
		}
		return r
	}
	return []record{make(0, "a", "1"), make(0, "a", "2"), make(1, "b", "3"), make(2, "", "4"), make(3, "", "5")}
}

func sampleCorpus() *corpus {
	return &corpus{
		connector: connectorFile{Config: map[string]string{"topic.prefix": "app", "transforms": "outbox"}},
		outcome:   outcome{State: stateRunning}, records: sampleRecords(),
	}
}

// sampleRun is the same, as another run makes it.
func sampleRun() *run {
	r := &run{records: sampleRecords(), began: 1000, ended: 2000}
	for i := range r.records {
		r.records[i].Timestamp = 1500
		r.records[i].Headers[0].value = []byte("01a234e3-4cb7-7222-8f89-000000000000")
	}
	// Without a key the partition is the producer's choice.
	r.records[3], r.records[4] = r.records[4], r.records[3]
	r.records[3].Partition, r.records[4].Partition = 7, 7
	return r
}

func TestJudgeSeesEveryDifference(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(c *corpus, r *run)
		want   string // "" passes
	}{
		"nothing":           {func(*corpus, *run) {}, ""},
		"key":               {func(_ *corpus, r *run) { r.records[0].Key = []byte("b") }, "key"},
		"empty key":         {func(c *corpus, r *run) { c.records[3].Key, r.records[4].Key = []byte{}, nil }, "missing"},
		"null value":        {func(_ *corpus, r *run) { r.records[0].Value = nil }, "value"},
		"empty value":       {func(c *corpus, r *run) { c.records[0].Value, r.records[0].Value = nil, []byte{} }, "value"},
		"topic":             {func(_ *corpus, r *run) { r.records[2].Topic = "u" }, "missing"},
		"partition":         {func(_ *corpus, r *run) { r.records[2].Partition = 4 }, "missing"},
		"order":             {func(_ *corpus, r *run) { r.records[0], r.records[1] = r.records[1], r.records[0] }, "header id, value"},
		"lost":              {func(_ *corpus, r *run) { r.records = slices.Delete(r.records, 1, 2) }, "t/0: record 1 is missing"},
		"twice":             {func(_ *corpus, r *run) { r.records = append(r.records, r.records[2]) }, "t/1: record 1 is too many"},
		"header":            {func(_ *corpus, r *run) { r.records[0].Headers[2].value = []byte{} }, "header type"},
		"header lost":       {func(_ *corpus, r *run) { r.records[0].Headers = r.records[0].Headers[:2] }, "2 headers, not 3"},
		"header added":      {func(_ *corpus, r *run) { r.records[0].Headers = append(r.records[0].Headers, header{"x", nil}) }, "4 headers, not 3"},
		"header order":      {func(_ *corpus, r *run) { h := r.records[0].Headers; h[1], h[2] = h[2], h[1] }, "header 1 is type, not id"},
		"run id":            {func(_ *corpus, r *run) { r.records[0].Headers[0].value = []byte("x") }, "no UUID of version 7"},
		"run id's version":  {func(_ *corpus, r *run) { r.records[0].Headers[0].value[14] = '4' }, "no UUID of version 7"},
		"run id quoted":     {func(_ *corpus, r *run) { r.records[0].Headers[0].value = []byte(`"` + someRun + `"`) }, "has 38 bytes, not 36"},
		"clock":             {func(_ *corpus, r *run) { r.records[0].Timestamp = 9000 }, "not of the run"},
		"timestamp":         {func(c *corpus, _ *run) { c.records[0].Timestamp = 1501 }, "timestamp 1500, not 1501"},
		"refusal":           {func(_ *corpus, r *run) { *r = run{refused: true, reason: "no"} }, "refuses what Debezium runs: no"},
		"held":              {func(_ *corpus, r *run) { r.held, r.reason = true, "poison" }, ""},
		"held too early":    {func(_ *corpus, r *run) { r.held, r.reason, r.records = true, "poison", r.records[:2] }, "missing"},
		"held without why":  {func(_ *corpus, r *run) { r.held = true }, "does not say why"},
		"goes on":           {func(c *corpus, _ *run) { c.outcome.State = "FAILED" }, "Debezium fails and walpost goes on"},
		"fails too":         {func(c *corpus, r *run) { c.outcome.State, r.held, r.reason = "FAILED", true, "poison" }, ""},
		"fails and refused": {func(c *corpus, r *run) { c.outcome.State = "FAILED"; *r = run{refused: true, reason: "no"} }, ""},
		"producer fails": {func(c *corpus, r *run) {
			c.outcome.State = "FAILED"
			*r = run{held: true, reason: "no", records: r.records[:1]}
		}, ""},
		"transform fails": {func(c *corpus, r *run) {
			c.outcome = outcome{State: "FAILED", Message: "Tolerance exceeded in error handler"}
			*r = run{held: true, reason: "no", records: r.records[:1], began: 1000, ended: 2000}
		}, "missing"},
		"more than it": {func(c *corpus, r *run) {
			c.outcome.State, c.records = "FAILED", c.records[:1]
			r.held, r.reason = true, "poison"
		}, "too many"},
		"more in other partitions": {func(c *corpus, r *run) {
			c.records = c.records[:1]
			r.held, r.lane, r.reason = true, true, "no such partition"
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			corpus, r := sampleCorpus(), sampleRun()
			c.change(corpus, r)
			v := judge(corpus, r)
			if v.pass != (c.want == "") || !strings.Contains(v.how, c.want) {
				t.Errorf("pass %v, %q; want %q", v.pass, v.how, c.want)
			}
			for i := range v.diffs {
				if s := v.diffs[i].String(); !strings.Contains(s, "Debezium: ") || !strings.Contains(s, "walpost:  ") {
					t.Errorf("difference without both sides: %s", s)
				}
			}
		})
	}
}

func TestPositionsOfAMessageDoNotCount(t *testing.T) {
	t.Parallel()
	c, r := sampleCorpus(), sampleRun()
	message := func(lsn, content string) []byte {
		return []byte(`{"op":"m","source":{"lsn":` + lsn + `,"sequence":"[\"` + lsn + `\"]","xmin":null},"content":"` + content + `"}`)
	}
	c.records[0].Topic, r.records[0].Topic = "app.message", "app.message"
	c.records[0].Value, r.records[0].Value = message("1", "x"), message("22", "x")
	if v := judge(c, r); !v.pass {
		t.Errorf("another position: %s", v.how)
	}
	r.records[0].Value = message("22", "y")
	if v := judge(c, r); v.pass {
		t.Error("another content passes")
	}
}

func TestJudgeSwap(t *testing.T) {
	t.Parallel()
	at := func(run, id, key string) record {
		return record{Key: []byte(key), Value: []byte(`{"n": ` + id + `}`), Headers: []header{{runID, []byte(run)}, {"id", []byte(id)}}}
	}
	a, b, c := someRun, "01a234e3-5cb7-7222-8f89-7a73cad2ab3f", "01a234e3-6cb7-7222-8f89-7a73cad2ab3f"
	good := []record{at(a, "1", "k"), at(a, "2", "l"), at(b, "2", "l"), at(b, "3", "k"), at(c, "4", "l")}
	r := judgeSwap(good, 4)
	if !r.ok() || r.repeats["published by Debezium before, and again by walpost"] != 1 || r.published["walpost"] != 1 {
		t.Errorf("judgeSwap: %s", r)
	}
	if r := judgeSwap(good[1:], 4); r.ok() || len(r.lost) != 1 || r.lost[0] != 1 {
		t.Errorf("a lost row: %s", r)
	}
	if r := judgeSwap([]record{at(a, "3", "k"), at(b, "1", "k"), at(c, "2", "l")}, 3); r.ok() || len(r.disorder) != 1 {
		t.Errorf("a key out of order: %s", r)
	}
	if r := judgeSwap([]record{at(a, "1", "k"), at(a, "9", "k")}, 1); r.ok() || r.foreign != 1 {
		t.Errorf("a record of no row: %s", r)
	}
}
