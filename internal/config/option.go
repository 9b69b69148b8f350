package config

import (
	"strings"
	"time"
)

// Kind is what a value looks like.
type Kind string

// The kinds, as help texts name them.
const (
	Text     Kind = "text"
	Bool     Kind = "bool"
	Int      Kind = "int"
	Bytes    Kind = "size"
	Duration Kind = "duration"
	List     Kind = "list"
	Pairs    Kind = "key=value"
	Tables   Kind = "table"
)

// Option is one row of the table.
type Option struct {
	Name    string // the path in the file, such as kafka.brokers
	Flag    string // without the dashes; the environment name is made of it
	Group   string
	Default string
	Help    string
	Enum    []string // the only values allowed, when there are such
	Secret  bool     // masked, and can be read from a file
	NoFlag  bool     // never on a command line, where everybody sees it
	Global  bool     // a flag of every command, not only of those that relay

	// at gives the place of the value in c: a pointer whose type is the kind.
	at func(c *Config) any
}

// Env is the name of the environment variable.
func (o *Option) Env() string {
	return "WALPOST_" + strings.ToUpper(strings.ReplaceAll(o.Flag, "-", "_"))
}

// Kind of the value.
func (o *Option) Kind() Kind {
	switch o.at(&Config{}).(type) {
	case *bool:
		return Bool
	case *int:
		return Int
	case *Size:
		return Bytes
	case *time.Duration:
		return Duration
	case *[]string:
		return List
	case *map[string]string:
		return Pairs
	case *[]Table:
		return Tables
	default:
		return Text
	}
}

// repeats says whether a flag adds to what it was given before.
func (o *Option) repeats() bool {
	switch o.Kind() {
	case List, Pairs, Tables:
		return true
	default:
		return false
	}
}

// file names of a secret's companion, which holds the path of a file.
func (o *Option) fileName() string { return o.Name + "_file" }
func (o *Option) fileFlag() string { return o.Flag + "-file" }
func (o *Option) fileEnv() string  { return o.Env() + "_FILE" }

// refused are keys that look like options and are none, with the reason.
func refused(name string) (way string, ok bool) {
	switch name {
	case "kafka.acks":
		return "walpost always waits for all in-sync replicas (acks=all) and nothing weaker exists; remove the key", true
	default:
		return "", false
	}
}
