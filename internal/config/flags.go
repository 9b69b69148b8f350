package config

import (
	"strings"

	"github.com/spf13/pflag"
)

// AddFlags gives fs the flags of the options that keep wants: the global ones
// (and --config), or the others.
func AddFlags(fs *pflag.FlagSet, keep func(*Option) bool) {
	options := Options()
	for i := range options {
		o := &options[i]
		if !keep(o) {
			continue
		}
		if !o.NoFlag {
			addFlag(fs, o)
		}
		if o.Secret {
			fs.Var(&flagValue{kind: "file"}, o.fileFlag(), "file to read --"+o.Flag+" from ["+o.fileEnv()+"]")
			if o.NoFlag {
				fs.Lookup(o.fileFlag()).Usage = "file with the " + o.Help + " [" + o.fileEnv() + "]"
			}
		}
	}
}

// AddFileFlag gives fs --config.
func AddFileFlag(fs *pflag.FlagSet) {
	fs.Var(&flagValue{kind: "file"}, FileFlag, fileHelp+" ["+FileEnv+"]")
}

// IsGlobal selects the flags that every command has.
func IsGlobal(o *Option) bool { return o.Global }

// IsLocal selects the flags of the commands that relay.
func IsLocal(o *Option) bool { return !o.Global }

func addFlag(fs *pflag.FlagSet, o *Option) {
	v := &flagValue{kind: string(o.Kind()), repeats: o.repeats()}
	usage := o.Help
	if len(o.Enum) > 0 {
		usage += ": " + strings.Join(o.Enum, ", ")
	}
	fs.Var(v, o.Flag, usage+" ["+o.Env()+"]")
	flag := fs.Lookup(o.Flag)
	flag.DefValue = o.Default
	if o.Kind() == Bool {
		flag.NoOptDefVal = "true"
	}
}

// flagValue keeps the text of a flag until Load, so that a bad value is
// reported like one from the environment or the file.
type flagValue struct {
	kind    string
	repeats bool
	texts   []string
}

// Set never fails.
func (v *flagValue) Set(text string) error {
	if !v.repeats {
		v.texts = v.texts[:0]
	}
	v.texts = append(v.texts, text)
	return nil
}

// String is what was given.
func (v *flagValue) String() string { return strings.Join(v.texts, ",") }

// Type is the placeholder in help texts.
func (v *flagValue) Type() string { return v.kind }
