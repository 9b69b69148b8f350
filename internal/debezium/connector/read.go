package connector

import (
	"errors"
	"strings"
)

// Options of Read. A file, Properties, or both are needed.
type Options struct {
	// Config is the path of the connector's file. ConfigData, if not nil, is its
	// content; the path then only names it.
	Config     string
	ConfigData []byte
	// Worker is the Connect worker's file, which is optional.
	Worker     string
	WorkerData []byte
	// Properties are keys of a connector that are added to those of the file and
	// replace them. Without a file they are those that Convert keeps: connection,
	// slot, publication and brokers are then configured elsewhere.
	Properties     map[string]string
	PropertiesName string // where they stand; debezium.properties

	Version          string // of Debezium that is to be reproduced; DefaultVersion
	NoContextHeaders bool   // leave the __debezium.context.* headers out
	// ReproduceDebugText lets StringConverter write structs and bytes as Java
	// prints them, which Debezium does and nobody means.
	ReproduceDebugText bool
	// Lenient leaves references that cannot be resolved here as they are, for
	// those who only want to look.
	Lenient bool

	ReadFile func(path string) ([]byte, error)
	Environ  []string // as os.Environ gives it
}

// reading is the state of one Read.
type reading struct {
	opt      Options
	env      map[string]string
	resolver *resolver
	version  version
	server   bool
	partial  bool // only what Convert keeps

	connector *settings
	worker    *settings
	alias     string // of the router in transforms
	tables    []group
	suggested int // how many keys were looked for a near one

	// verdicts are those that were found for more than one key at once.
	verdicts map[*setting]verdict

	spec   *Spec
	report *Report
}

// Read reads a connector's configuration. The error is an *Error, or Errors with
// all that was found; the Report is there as soon as the files could be read,
// and says of every key what walpost does with it.
func Read(opt Options) (*Spec, *Report, error) {
	v, err := parseVersion(opt.Version)
	if err != nil {
		return nil, nil, err
	}
	if opt.PropertiesName == "" {
		opt.PropertiesName = "debezium.properties"
	}
	if opt.ReadFile == nil {
		opt.ReadFile = func(string) ([]byte, error) { return nil, errNoFiles }
	}
	r := &reading{
		opt: opt, version: v, env: map[string]string{},
		connector: newSettings(), worker: newSettings(), verdicts: map[*setting]verdict{},
		spec:   &Spec{Version: v.String(), ReproduceDebugText: opt.ReproduceDebugText, noContextHeaders: opt.NoContextHeaders},
		report: &Report{file: opt.Config},
	}
	if opt.Config == "" && opt.ConfigData == nil {
		r.report.file = opt.PropertiesName
	}
	for _, item := range opt.Environ {
		if name, value, ok := strings.Cut(item, "="); ok {
			r.env[name] = value
		}
	}
	if err := r.load(); err != nil {
		return nil, nil, err
	}
	r.decide()
	if errs := r.report.refusals(); len(errs) > 0 {
		return nil, r.report, errs
	}
	return r.spec, r.report, nil
}

var errNoFiles = errors.New("files cannot be read here")

func hintOf(err error) string {
	if hinted, ok := errors.AsType[interface {
		error
		Hint() string
	}](err); ok {
		return hinted.Hint()
	}
	return ""
}

// set says whether a key of the connector has a value.
func (r *reading) set(key string) bool { return r.connector.byKey[key] != nil }

// value gives a key's value, or otherwise where the key is not set.
func (r *reading) value(key, otherwise string) string {
	if v, ok := r.connector.get(key); ok {
		return v
	}
	return otherwise
}

// is compares a key's value without regard to case.
func (r *reading) is(key, otherwise, want string) bool {
	return strings.EqualFold(r.value(key, otherwise), want)
}
