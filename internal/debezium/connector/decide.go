package connector

import (
	"fmt"
	"slices"
	"strings"

	"github.com/walpost/walpost/internal/config"
)

// keptKey is a key that Convert keeps.
type keptKey struct {
	key, raw string
	origin   string
	secret   bool
}

// decide goes through every key that is set, then through the defaults.
func (r *reading) decide() {
	r.router()
	r.predicates()
	r.converters()
	r.prepareTables()
	for _, s := range r.connector.order {
		r.enter(s, r.table(s), r.decideOne(s))
	}
	for _, s := range r.worker.order {
		r.enter(s, nil, r.decideWorker(s))
	}
	for _, group := range r.tables {
		for i := range group.rules {
			rule := &group.rules[i]
			key := group.prefix + rule.key
			if r.set(key) || strings.HasSuffix(rule.key, "*") || rule.def == "" && !rule.show {
				continue
			}
			if r.partial && rule.own {
				continue
			}
			s := &setting{written: r.writtenAs(key), key: key, value: rule.def, origin: "default"}
			if v := rule.decide(r, s); v.decision != "" && (rule.show || v.severity != SeveritySame) {
				r.enter(s, nil, v)
			}
		}
	}
	r.finish()
}

// writtenAs is how the file would have a key.
func (r *reading) writtenAs(key string) string {
	if r.server {
		return serverName(key)
	}
	return key
}

// enter puts a verdict into the report.
func (r *reading) enter(s *setting, rule *rule, v verdict) {
	r.report.Entries = append(r.report.Entries, Entry{
		Key: s.written, Value: s.show(), Origin: s.origin, Set: s.set,
		Decision: v.decision, Severity: v.severity, Does: v.does, Difference: v.difference, Way: v.way,
	})
	if s.unresolved != nil && (s.worker || rule != nil && rule.own) {
		r.spec.unread = append(r.spec.unread, keptKey{s.written, s.raw, s.origin, s.secret})
	}
	if s.worker && !strings.Contains(s.key, ".converter") {
		return // brokers and producer: walpost has options of its own
	}
	if s.set && v.decision == Honoured && s.overridden == "" && (rule == nil || !rule.own) {
		r.spec.kept = append(r.spec.kept, keptKey{s.written, s.raw, s.origin, s.secret})
	}
}

// decideOne decides about a key of the connector's file.
func (r *reading) decideOne(s *setting) verdict {
	if s.overridden != "" {
		return ignored("set again by " + s.overridden + ", which counts")
	}
	if v, ok := r.verdicts[s]; ok {
		return v
	}
	rule := r.table(s)
	if rule == nil {
		return r.unknown(s)
	}
	if s.unresolved != nil {
		return noted("its value is read when walpost runs", s.unresolved.Error())
	}
	return rule.decide(r, s)
}

// group is a table of keys behind a prefix.
type group struct {
	prefix string
	rules  []rule
}

// prepareTables finds the tables that apply, the ones with a prefix first.
func (r *reading) prepareTables() {
	r.tables = []group{{producerOverride, producerRules(r.server)}, {topicCreation, topicRules()}}
	if r.alias != "" {
		r.tables = append(r.tables, group{r.aliasPrefix(), routerRules()})
	}
	for _, rules := range [][]rule{
		identityRules(), databaseRules(), selectionRules(), replicationRules(), snapshotRules(),
		valueRules(), topicNameRules(), connectRules(), otherRules(),
	} {
		r.tables = append(r.tables, group{"", rules})
	}
	if r.server {
		r.tables = append(r.tables, group{"", serverRules()})
	}
}

// table finds the rule of a setting; nil when there is none.
func (r *reading) table(s *setting) *rule {
	for _, group := range r.tables {
		key, ok := strings.CutPrefix(s.key, group.prefix)
		if !ok {
			continue
		}
		if rule := findRule(group.rules, key); rule != nil {
			return rule
		}
	}
	return nil
}

// findRule prefers the key itself to a pattern.
func findRule(rules []rule, key string) *rule {
	for i := range rules {
		if rules[i].key == key {
			return &rules[i]
		}
	}
	for i := range rules {
		if prefix, ok := strings.CutSuffix(rules[i].key, "*"); ok && strings.HasPrefix(key, prefix) && len(key) > len(prefix) {
			return &rules[i]
		}
	}
	return nil
}

// unknown refuses a key that is in no table.
func (r *reading) unknown(s *setting) verdict {
	if r.alias != "" {
		if option, ok := strings.CutPrefix(s.key, r.aliasPrefix()); ok {
			if way, ok := formerRouterOptions[option]; ok {
				return refused("the router had this option in Debezium 1.x; since then it is ignored without a word", way)
			}
			return refused("the router has no such option; Debezium ignores it without a word", r.near(s, r.aliasPrefix(), "remove it"))
		}
	}
	if way, ok := formerKeys[s.key]; ok {
		return refused("Debezium 1.x had this key", way)
	}
	v := refused("walpost does not know this key, so it cannot say that it does not matter",
		r.near(s, "", "remove it if it is not a setting of Debezium; nothing is ignored silently"))
	return v
}

// A suggestion is dear; a file with more unknown keys, or longer ones, is none.
const (
	maxSuggestions = 100
	maxSuggested   = 200
)

func (r *reading) closest(key string, names []string) (string, bool) {
	if r.suggested++; r.suggested > maxSuggestions || len(key) > maxSuggested {
		return "", false
	}
	return config.Closest(key, names)
}

// near suggests a known key. A key that is meant to hold a secret is masked,
// whatever it is called.
func (r *reading) near(s *setting, prefix, otherwise string) string {
	var names []string
	for _, group := range r.tables {
		if prefix != "" && group.prefix != prefix {
			continue
		}
		for i := range group.rules {
			if !strings.HasSuffix(group.rules[i].key, "*") {
				names = append(names, group.prefix+group.rules[i].key)
			}
		}
	}
	if prefix == "" {
		names = append(names, "key.converter", "value.converter", "header.converter")
	}
	key := strings.TrimPrefix(s.key, prefix)
	for i := range names {
		names[i] = strings.TrimPrefix(names[i], prefix)
	}
	found, ok := r.closest(key, names)
	if !ok {
		return otherwise
	}
	if isSecretName(found) {
		s.secret = true
	}
	written := strings.TrimSuffix(s.written, key) + found
	return fmt.Sprintf("did you mean %q?", written)
}

// required refuses where a key is missing; what Convert keeps lacks those that
// walpost has itself.
func required(does, way string, put func(r *reading, v string)) decide {
	return func(r *reading, s *setting) verdict {
		v := strings.TrimSpace(s.value)
		if v == "" {
			if !s.set {
				return refused("not set, and Debezium has no default", way)
			}
			return malformed(s, way)
		}
		put(r, v)
		return same(does)
	}
}

// over notes a value for an option of walpost's own.
func (r *reading) over(name, value string, s *setting) *Overlay {
	o := Overlay{Name: name, Text: value, Origin: s.origin, Key: s.written, Secret: s.secret, raw: s.raw}
	if !s.set {
		o.Origin = "Debezium's default"
	}
	i := slices.IndexFunc(r.spec.overlay, func(o Overlay) bool { return o.Name == name })
	if i < 0 {
		i = len(r.spec.overlay)
		r.spec.overlay = append(r.spec.overlay, o)
	}
	r.spec.overlay[i] = o
	return &r.spec.overlay[i]
}
