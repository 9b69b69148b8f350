package main

import "testing"

func TestJudge(t *testing.T) {
	t.Parallel()
	// Two keys; ids say key and version.
	events := []event{
		{id: "a1", kind: "t", key: "a"}, {id: "b1", kind: "t", key: "b"},
		{id: "a2", kind: "t", key: "a"}, {id: "a3", kind: "t", key: "a"},
	}
	of := func(ids ...string) []record {
		var all []record
		for _, id := range ids {
			all = append(all, record{id: id, kind: "t"})
		}
		return all
	}
	for name, c := range map[string]struct {
		records []record
		found   finding // what the scenario found before
		want    string
		fails   bool
		fails1  bool // at least once
	}{
		"all there":            {of("a1", "b1", "a2", "a3"), finding{}, "pass", false, false},
		"keys in any order":    {of("b1", "a1", "a2", "a3"), finding{}, "pass", false, false},
		"one missing":          {of("a1", "a2", "a3"), finding{}, "lost 1", true, true},
		"the last are missing": {of("a1", "b1"), finding{}, "stuck", true, true},
		"nothing there":        {nil, finding{}, "stuck", true, true},
		"held on purpose":      {of("a1"), finding{holds: true}, "pass", false, false},
		"holds, with a gap":    {of("a1", "a2"), finding{holds: true}, "lost 1", true, true},
		"twice":                {of("a1", "b1", "a2", "a1", "a2", "a3"), finding{}, "duplicated 2", true, false},
		"swapped":              {of("a2", "a1", "b1", "a3"), finding{}, "disordered 1", true, true},
		"a repeat is no order": {of("a1", "b1", "a2", "a3", "a1"), finding{}, "duplicated 1", true, false},
		"never written":        {of("a1", "b1", "a2", "a3", "x"), finding{}, "phantom 1", true, true},
		"in another topic":     {append(of("a1", "a2", "a3"), record{id: "b1", kind: "other"}), finding{}, "lost 1, phantom 1", true, true},
		"confirmed early":      {of("a1", "b1", "a2", "a3"), finding{early: []string{"x"}}, "confirmed-too-early", true, true},
		"several": {
			of("a2", "a1", "a1", "a3"), finding{early: []string{"x"}, stuck: []string{"y"}},
			"lost 1, confirmed-too-early, disordered 1, stuck, duplicated 1", true, true,
		},
	} {
		f := c.found
		f.judge(events, c.records)
		if got := f.verdict(); got != c.want {
			t.Errorf("%s: verdict %q, want %q", name, got, c.want)
		}
		if got, got1 := f.failed(false), f.failed(true); got != c.fails || got1 != c.fails1 {
			t.Errorf("%s: failed %t, at least once %t; want %t, %t", name, got, got1, c.fails, c.fails1)
		}
	}
}

func TestPartitionsHaveOrdersOfTheirOwn(t *testing.T) {
	t.Parallel()
	events := []event{{id: "1", kind: "t", key: "a"}, {id: "2", kind: "t", key: "a"}}
	var f finding
	f.judge(events, []record{{id: "2", kind: "t", partition: 0}, {id: "1", kind: "t", partition: 1}})
	if f.disordered != 0 {
		t.Errorf("disordered %d, want 0: a topic's partitions are read one after the other", f.disordered)
	}
}
