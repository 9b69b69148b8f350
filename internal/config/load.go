package config

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/spf13/pflag"
)

// Need says which parts a command cannot do without.
type Need uint8

// The parts.
const (
	NeedPostgres Need = 1 << iota // a server is named
	NeedSink                      // brokers are named, unless the sink needs none
)

// Sources is where Load reads from.
type Sources struct {
	Flags    *pflag.FlagSet // may be nil
	Environ  []string       // as os.Environ gives it
	ReadFile func(path string) ([]byte, error)
	Need     Need
	// Foreign reads a connector's configuration, when there is one. What it gives
	// takes the place of defaults. Its error is an Errors, or an *Error.
	Foreign func(Debezium) ([]Value, []Warning, error)
}

// Value of an option that comes from a connector's configuration.
type Value struct {
	Name   string // of the option
	Text   string
	Origin string
}

// Origin is where a value came from.
type Origin struct {
	// Text is for people: flag --slot, env WALPOST_SLOT, walpost.yaml:12, default.
	Text string
	// place begins an error about the value.
	place string
}

const fromDefault = "default"

// Load reads and checks everything. The error is of type Errors.
func Load(src Sources) (*Config, error) {
	l := &loader{src: src, env: environment(src.Environ), cfg: &Config{origins: map[string]Origin{}}}
	options := Options()
	l.readFile(options)
	for i := range options {
		if isForeign(&options[i]) {
			l.option(&options[i])
		}
	}
	l.readForeign()
	for i := range options {
		if !isForeign(&options[i]) {
			l.option(&options[i])
		}
	}
	l.warnUnknownEnv(options)
	// A value that could not be read is not checked further: that would only
	// repeat the fault in other words.
	l.check(options)
	if len(l.errs) > 0 {
		return nil, l.errs
	}
	return l.cfg, nil
}

type loader struct {
	src  Sources
	env  map[string]string
	file *file
	cfg  *Config
	errs Errors
	// needless is set when the file's structure has a fault: a value that seems
	// to be missing may stand behind a misspelt key.
	needless bool
	// bad are the names of options whose value could not be read.
	bad map[string]bool
	// foreign are the values of a connector's configuration.
	foreign map[string]Value
}

// isForeign says that an option tells where another configuration is.
func isForeign(o *Option) bool { return o.Group == groupDebezium }

func (l *loader) readForeign() {
	d := &l.cfg.Debezium
	if l.file != nil {
		if set, ok := l.file.values["debezium.properties"]; ok {
			d.PropertiesOrigin = fmt.Sprintf("%s:%d", l.file.path, set.line)
		}
	}
	switch {
	case !d.Enabled():
		if d.Worker != "" {
			l.failAt("debezium.worker", "set, but no connector is", "name its file with --debezium")
		}
		return
	case d.Config != "" && len(d.Properties) > 0:
		l.failAt("debezium.config", "debezium.properties is set too", "keep one of them")
		return
	case l.src.Foreign == nil:
		return
	}
	values, warnings, err := l.src.Foreign(*d)
	l.cfg.Warnings = append(l.cfg.Warnings, warnings...)
	if err != nil {
		l.needless = true // what seems to be missing may stand in that file
		if list, ok := errors.AsType[Errors](err); ok {
			l.errs = append(l.errs, list...)
		} else if bad, ok := errors.AsType[*Error](err); ok {
			l.errs = append(l.errs, bad)
		} else {
			l.fail(err.Error(), "")
		}
		return
	}
	l.foreign = make(map[string]Value, len(values))
	for _, v := range values {
		l.foreign[v.Name] = v
	}
}

func (l *loader) fromForeign(o *Option, at any) bool {
	v, ok := l.foreign[o.Name]
	if ok {
		l.cfg.origins[o.Name] = Origin{Text: v.Origin, place: v.Origin}
		l.parse(o, at, v.Text)
	}
	return ok
}

func environment(list []string) map[string]string {
	env := make(map[string]string, len(list))
	for _, pair := range list {
		// An empty variable is what "X: ${X:-}" in a compose file leaves: not set.
		if name, value, ok := strings.Cut(pair, "="); ok && value != "" {
			env[name] = value
		}
	}
	return env
}

func (l *loader) fail(what, way string) {
	l.errs = append(l.errs, &Error{Text: what, Way: way})
}

func (l *loader) needs(n Need) bool { return l.src.Need&n != 0 && !l.needless }

// failAt reports a fault of the option's value, where the value came from.
func (l *loader) failAt(name, what, way string) {
	l.fail(l.place(name)+": "+what, way)
	l.spoil(name)
}

func (l *loader) place(name string) string {
	if place := l.cfg.origins[name].place; place != "" {
		return place
	}
	return name
}

func (l *loader) spoil(name string) {
	if l.bad == nil {
		l.bad = map[string]bool{}
	}
	l.bad[name] = true
}

// readFile finds the configuration file and reads its structure.
func (l *loader) readFile(options []Option) {
	path, origin := l.env[FileEnv], FileEnv
	if texts, ok := l.flag(FileFlag); ok {
		path, origin = texts[0], "--"+FileFlag
	}
	given := path != ""
	if !given {
		path = DefaultFile
	}
	data, err := l.src.ReadFile(path)
	switch {
	case err == nil:
		l.cfg.File = path
		l.file = parseFile(path, data, options)
		l.errs = append(l.errs, l.file.errs...)
		l.needless = len(l.file.errs) > 0
		l.file.errs = nil
	case given:
		l.needless = true // what seems to be missing may stand in that file
		l.fail(origin+": "+fileFault(err), "name a file that exists and can be read")
	case !errors.Is(err, fs.ErrNotExist):
		l.needless = true
		l.fail(fileFault(err), "make the file readable, or name another one with --"+FileFlag)
	}
}

// fileFault says what is wrong with a file, naming it.
func fileFault(err error) string {
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		return fmt.Sprintf("%s %s: %v", pathErr.Op, pathErr.Path, pathErr.Err)
	}
	return err.Error()
}

func (l *loader) flag(name string) ([]string, bool) {
	if l.src.Flags == nil {
		return nil, false
	}
	f := l.src.Flags.Lookup(name)
	if f == nil || !f.Changed {
		return nil, false
	}
	v, ok := f.Value.(*flagValue)
	if !ok || len(v.texts) == 0 {
		return nil, false
	}
	return v.texts, true
}

// option takes the value from the first layer that has one.
func (l *loader) option(o *Option) {
	at := o.at(l.cfg)
	layers := []func(*Option, any) bool{l.fromFlag, l.fromEnv, l.fromFile, l.fromForeign}
	for _, from := range layers {
		if from(o, at) {
			return
		}
	}
	l.cfg.origins[o.Name] = Origin{Text: fromDefault}
	if o.Default == "" {
		return
	}
	if bad := parseText(at, o.Default); bad != nil {
		l.failAt(o.Name, bad.what, bad.way) // a test sees to it that this cannot be
	}
}

func (l *loader) fromFlag(o *Option, at any) bool {
	texts, direct := l.flag(o.Flag)
	paths, byFile := []string(nil), false
	if o.Secret {
		paths, byFile = l.flag(o.fileFlag())
	}
	switch {
	case direct && byFile:
		l.both(o, "--"+o.Flag, "--"+o.fileFlag())
	case byFile:
		l.secret(o, at, paths[0], "flag --"+o.fileFlag(), "--"+o.fileFlag())
	case direct:
		l.cfg.origins[o.Name] = Origin{Text: "flag --" + o.Flag, place: "--" + o.Flag}
		l.parse(o, at, strings.Join(texts, ","))
	}
	return direct || byFile
}

func (l *loader) fromEnv(o *Option, at any) bool {
	text, direct := l.env[o.Env()]
	path, byFile := "", false
	if o.Secret {
		path, byFile = l.env[o.fileEnv()]
	}
	switch {
	case direct && byFile:
		l.both(o, o.Env(), o.fileEnv())
	case byFile:
		l.secret(o, at, path, "env "+o.fileEnv(), o.fileEnv())
	case direct:
		l.cfg.origins[o.Name] = Origin{Text: "env " + o.Env(), place: o.Env()}
		l.parse(o, at, text)
	}
	return direct || byFile
}

func (l *loader) fromFile(o *Option, at any) bool {
	if l.file == nil {
		return false
	}
	set, direct := l.file.values[o.Name]
	if o.Secret {
		if byFile, ok := l.file.values[o.fileName()]; ok {
			where := fmt.Sprintf("%s:%d", l.file.path, byFile.line)
			var path string
			switch {
			case direct:
				l.both(o, fmt.Sprintf("%s:%d: %s", l.file.path, set.line, o.Name), fmt.Sprintf("%s on line %d", o.fileName(), byFile.line))
			case l.file.text(o.fileName(), byFile.node, &path):
				l.secret(o, at, path, where, where+": "+o.fileName())
			}
			l.takeFileErrors(o)
			return true
		}
	}
	if !direct {
		return false
	}
	where := fmt.Sprintf("%s:%d", l.file.path, set.line)
	l.cfg.origins[o.Name] = Origin{Text: where, place: where + ": " + o.Name}
	l.file.value(o.Name, at, set.node)
	l.takeFileErrors(o)
	return true
}

func (l *loader) takeFileErrors(o *Option) {
	if len(l.file.errs) > 0 {
		l.errs = append(l.errs, l.file.errs...)
		l.file.errs = nil
		l.spoil(o.Name)
	}
}

func (l *loader) parse(o *Option, at any, text string) {
	if o.repeats() && len(splitList(text)) == 0 {
		l.failAt(o.Name, "the list is empty", "name at least one")
		return
	}
	if bad := parseText(at, text); bad != nil {
		l.failAt(o.Name, bad.what, bad.way)
	}
}

func (l *loader) both(o *Option, one, other string) {
	l.fail(one+" and "+other+" are both set", "keep one of them")
	l.spoil(o.Name)
}

// secret reads a value from a file. One newline at the end is not part of it:
// editors and "echo" put it there.
func (l *loader) secret(o *Option, at any, path, origin, place string) {
	l.cfg.origins[o.Name] = Origin{Text: "file " + path + " (" + origin + ")", place: place}
	data, err := l.src.ReadFile(path)
	if err != nil {
		l.failAt(o.Name, fileFault(err), "name a file that exists and can be read")
		return
	}
	text := strings.TrimSuffix(strings.TrimSuffix(string(data), "\n"), "\r")
	if text == "" {
		l.failAt(o.Name, path+" is empty", "write the value into the file")
		return
	}
	if bad := parseText(at, text); bad != nil {
		l.failAt(o.Name, "the file's content is not valid", bad.way)
	}
}

// warnUnknownEnv finds misspelt variables. It only warns: Kubernetes gives
// every pod variables named after services, and one may be called walpost.
func (l *loader) warnUnknownEnv(options []Option) {
	const prefix = "WALPOST_"
	known := []string{strings.TrimPrefix(FileEnv, prefix)}
	for i := range options {
		o := &options[i]
		known = append(known, strings.TrimPrefix(o.Env(), prefix))
		if o.Secret {
			known = append(known, strings.TrimPrefix(o.fileEnv(), prefix))
		}
	}
	for _, pair := range l.src.Environ {
		name, _, _ := strings.Cut(pair, "=")
		rest, ours := strings.CutPrefix(name, prefix)
		if !ours {
			continue
		}
		if near, ok := Closest(rest, known); ok && near != rest {
			l.warn("environment variable "+name+" is not used", "did you mean "+prefix+near+"?")
		}
	}
}
