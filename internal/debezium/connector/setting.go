package connector

import (
	"fmt"
	"strings"
)

// setting is a key with its value, references resolved.
type setting struct {
	written string // the key as the file has it
	key     string // as a connector has it
	raw     string // the value as the file has it
	value   string
	origin  string
	set     bool // false: Debezium's default
	worker  bool // from the worker's file
	secret  bool
	// unresolved says why a reference was left as it is.
	unresolved error
	// overridden names what replaces the setting.
	overridden string
}

// settings are those of one layer.
type settings struct {
	order []*setting
	byKey map[string]*setting
}

func newSettings() *settings { return &settings{byKey: map[string]*setting{}} }

// add appends a setting. One with the same key before is overridden.
func (l *settings) add(s *setting) {
	if before := l.byKey[s.key]; before != nil {
		before.overridden = s.origin
	}
	l.byKey[s.key] = s
	l.order = append(l.order, s)
}

// get gives the trimmed value of a key that is set.
func (l *settings) get(key string) (string, bool) {
	s := l.byKey[key]
	if s == nil {
		return "", false
	}
	return strings.TrimSpace(s.value), true
}

// place is where a pair of a file stands.
func place(name string, p pair) string {
	if p.line == 0 {
		return name
	}
	return fmt.Sprintf("%s:%d", name, p.line)
}

// load reads the files and the environment into layers.
func (r *reading) load() error {
	pairs, err := r.pairs(r.opt.Config, r.opt.ConfigData)
	if err != nil {
		return err
	}
	extra := mapPairs(r.opt.Properties)
	r.partial = pairs == nil
	if r.partial && len(extra) == 0 {
		return &Error{Text: "no connector configuration is named", Way: "name the connector's file"}
	}
	r.server = isServer(pairs) || isServer(extra)
	worker, err := r.pairs(r.opt.Worker, r.opt.WorkerData)
	if err != nil {
		return err
	}
	if r.server && worker != nil {
		return &Error{Text: r.opt.Worker + ": Debezium Server has no Connect worker", Way: "leave the worker's file out"}
	}
	if isServer(worker) {
		return &Error{Text: r.opt.Worker + ": this is the file of Debezium Server, not of a Connect worker", Way: "name it as the connector's file"}
	}
	r.resolver = &resolver{env: r.env, readFile: r.opt.ReadFile, providers: providers}
	for _, p := range worker {
		r.worker.add(&setting{written: p.key, key: p.key, raw: p.value, origin: place(r.opt.Worker, p), set: true, worker: true})
	}
	r.declareProviders()

	add := func(origin func(pair) string, list []pair) {
		for _, p := range list {
			s := &setting{written: p.key, key: p.key, raw: p.value, origin: origin(p), set: true}
			if r.server {
				s.key = canonical(p.key)
			}
			r.connector.add(s)
		}
	}
	add(func(p pair) string { return place(r.opt.Config, p) }, pairs)
	if r.server && !r.partial {
		add(func(p pair) string { return "env " + strings.ToUpper(strings.ReplaceAll(p.key, ".", "_")) }, serverEnvironment(r.opt.Environ))
	}
	add(func(pair) string { return r.opt.PropertiesName }, extra)
	return r.resolveAll()
}

// pairs reads a file, or what is given in its place; nil when there is neither.
func (r *reading) pairs(name string, data []byte) ([]pair, error) {
	if name == "" && data == nil {
		return nil, nil
	}
	if data == nil {
		var err error
		if data, err = r.opt.ReadFile(name); err != nil {
			return nil, &Error{Text: err.Error(), Way: "name a file that exists and can be read"}
		}
	}
	pairs, err := readPairs(name, data)
	if pairs == nil {
		pairs = []pair{}
	}
	return pairs, err
}

// declareProviders takes the names that the worker's file gives to config
// providers. A worker's file that declares none may be a part of it only.
func (r *reading) declareProviders() {
	list := r.worker.byKey["config.providers"]
	if list == nil {
		return
	}
	declared := map[string]string{}
	for _, name := range splitList(list.raw) {
		if class := r.worker.byKey["config.providers."+name+".class"]; class != nil {
			declared[name] = strings.TrimSpace(class.raw)
		}
	}
	r.resolver.providers = declared
}

// resolveAll replaces references and expressions, and finds out what is secret.
func (r *reading) resolveAll() error {
	x := &expander{env: r.env, file: map[string]string{}}
	for _, s := range r.connector.order {
		x.file[s.written] = s.raw
	}
	var errs Errors
	for _, s := range append(append([]*setting(nil), r.worker.order...), r.connector.order...) {
		var err error
		s.secret = isSecretName(s.written)
		if r.server && isServerKey(s.written) {
			s.value, err = x.expand(s.raw)
			s.secret = s.secret || x.secret
		} else {
			var secret bool
			s.value, secret, err = r.resolver.resolve(s.raw)
			s.secret = s.secret || secret
		}
		if err == nil || s.overridden != "" {
			continue
		}
		s.value = s.raw
		if r.opt.Lenient {
			s.unresolved = err
			continue
		}
		errs = append(errs, &Error{Text: fmt.Sprintf("%s: %s: %v", s.origin, s.written, err), Way: hintOf(err)})
	}
	if len(errs) > 0 {
		return errs
	}
	return nil
}

// splitList cuts at commas and drops what is empty.
func splitList(text string) []string {
	var items []string
	for item := range strings.SplitSeq(text, ",") {
		if item = strings.TrimSpace(item); item != "" {
			items = append(items, item)
		}
	}
	return items
}
