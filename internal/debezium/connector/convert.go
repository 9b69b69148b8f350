package connector

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/walpost/walpost/internal/config"
)

// passwordKeys hold what a DSN is written without.
var passwordKeys = []string{"database.password", "database.sslpassword"}

// schemaLists say nothing more where the tables are named.
var schemaLists = []string{"schema.include.list", "schema.exclude.list"}

// Convert writes the walpost.yaml that does what the connector's configuration
// does: walpost's own options for connection, slot, publication, tables and
// Kafka, and the keys that decide about records as debezium.properties. No
// secret is written; a comment says where it was.
func Convert(w io.Writer, spec *Spec, from string) error {
	if errs := spec.unreadable(); len(errs) > 0 {
		return errs
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "# Converted from %s. It gives the same records.\n", oneLine(from))
	spec.writeOptions(&b)
	if !slices.ContainsFunc(spec.overlay, func(o Overlay) bool { return o.Name == "kafka.brokers" }) {
		b.WriteString("# The brokers stand in the worker's configuration: give it with --worker, or write them here.\n# kafka: {brokers: [host:9092]}\n")
	}
	spec.writeProperties(&b)
	_, err := w.Write(b.Bytes())
	return err
}

// unreadable are values that would have to be written and are not known here.
func (s *Spec) unreadable() Errors {
	var errs Errors
	for _, k := range s.unread {
		if !k.secret {
			errs = append(errs, &Error{
				Text: fmt.Sprintf("%s: %s: its reference cannot be resolved here, and the value has to be written", k.origin, k.key),
				Way:  "run this where the variable or the file is, or set the variable by hand",
			})
		}
	}
	return errs
}

// writeOptions writes walpost's own options in the order of their table.
func (s *Spec) writeOptions(b *bytes.Buffer) {
	last := []string{}
	for _, o := range config.Options() {
		i := slices.IndexFunc(s.overlay, func(v Overlay) bool { return v.Name == o.Name })
		comment := s.secretComment(o.Name)
		if i < 0 && comment == "" {
			continue
		}
		path := strings.Split(o.Name, ".")
		depth := 0
		for depth < len(path)-1 && depth < len(last) && last[depth] == path[depth] {
			depth++
		}
		for ; depth < len(path)-1; depth++ {
			fmt.Fprintf(b, "%s%s:\n", indent(depth), path[depth])
		}
		last = path[:len(path)-1]
		if comment != "" {
			fmt.Fprintf(b, "%s# %s\n", indent(depth), oneLine(comment))
		}
		if i < 0 {
			continue
		}
		v := &s.overlay[i]
		text := v.Text
		if o.Name == "postgres.dsn" {
			text = s.Database.dsn(false)
		} else if v.Secret || o.Secret {
			continue
		}
		writeValue(b, depth, path[len(path)-1], o.Kind(), text)
	}
}

// secretComment says where a secret was, and where it goes.
func (s *Spec) secretComment(option string) string {
	switch option {
	case "postgres.dsn":
		for _, k := range s.unread {
			if slices.Contains(passwordKeys, canonical(k.key)) {
				return "The password is " + referenceText(k.raw) + ": set PGPASSWORD, or put the whole DSN into a file and name it with dsn_file."
			}
		}
		if s.Database.Password == "" && s.Database.SSLPassword == "" {
			return ""
		}
		return "The password is not written here: set PGPASSWORD, or put the whole DSN into a file and name it with dsn_file."
	case "kafka.sasl.password":
		const way = " is not written here: put it into a file and name it with password_file, or set WALPOST_KAFKA_SASL_PASSWORD."
		for _, k := range s.unread {
			if strings.HasSuffix(k.key, "sasl.jaas.config") {
				return "The user name and password stand in " + referenceText(k.raw) + ": write username, put the password into a file and name it with password_file."
			}
		}
		for i := range s.overlay {
			if s.overlay[i].Name == option {
				return "The password from " + s.overlay[i].Origin + way
			}
		}
	}
	return ""
}

// writeProperties writes the keys that have no option of walpost's own.
func (s *Spec) writeProperties(b *bytes.Buffer) {
	fmt.Fprintf(b, "debezium:\n  version: %s\n", quoted(s.Version))
	if s.noContextHeaders {
		b.WriteString("  context_headers: false\n")
	}
	if s.ReproduceDebugText {
		b.WriteString("  reproduce_debug_text: true\n")
	}
	b.WriteString("  properties:\n")
	for _, k := range s.kept {
		if slices.ContainsFunc(s.overlay, func(o Overlay) bool {
			return o.Key == k.key || o.Name == "postgres.tables" && slices.Contains(schemaLists, canonical(k.key))
		}) {
			continue
		}
		if isSecretName(k.key) && !wholeReference.MatchString(k.raw) {
			fmt.Fprintf(b, "    # %s is a secret, and not written here: it was in %s\n", oneLine(k.key), oneLine(k.origin))
			continue
		}
		fmt.Fprintf(b, "    %s: %s\n", scalar(k.key), scalar(k.raw))
	}
}

// wholeReference is a value that is a reference and nothing else. One with a
// default may have a secret in it.
var wholeReference = regexp.MustCompile(`^\$\{(env:[^{}:]*|[^{}:]*|(file|dir|directory):[^{}:]+:[^{}:]+)\}$`)

func referenceText(raw string) string {
	if wholeReference.MatchString(raw) {
		return raw
	}
	return "a reference"
}

func indent(depth int) string { return strings.Repeat("  ", depth) }

// writeValue writes an option as the configuration file wants it.
func writeValue(b *bytes.Buffer, depth int, name string, kind config.Kind, text string) {
	switch kind {
	case config.Bool, config.Int:
		fmt.Fprintf(b, "%s%s: %s\n", indent(depth), name, text)
	case config.List, config.Tables:
		items := splitList(text)
		for i := range items {
			items[i] = scalar(items[i])
		}
		fmt.Fprintf(b, "%s%s: [%s]\n", indent(depth), name, strings.Join(items, ", "))
	case config.Pairs:
		fmt.Fprintf(b, "%s%s:\n", indent(depth), name)
		for _, item := range pairsOf(text) {
			key, value, _ := strings.Cut(item, "=")
			fmt.Fprintf(b, "%s%s: %s\n", indent(depth+1), scalar(key), scalar(value))
		}
	default:
		fmt.Fprintf(b, "%s%s: %s\n", indent(depth), name, scalar(text))
	}
}

// pairsOf cuts a=1,b=2; what has no = belongs to the value before it.
func pairsOf(text string) []string {
	var items []string
	for part := range strings.SplitSeq(text, ",") {
		if len(items) > 0 && !strings.Contains(part, "=") {
			items[len(items)-1] += "," + part
			continue
		}
		items = append(items, part)
	}
	return items
}

// plainScalar is text that YAML takes for text without quotes, if it is none of
// yamlWords.
var plainScalar = regexp.MustCompile(`^[a-z_][A-Za-z0-9_]*([./:-][A-Za-z0-9_]+)*$`)

var yamlWords = []string{"true", "false", "null", "yes", "no", "on", "off", "y", "n"}

func scalar(text string) string {
	if plainScalar.MatchString(text) && !slices.Contains(yamlWords, strings.ToLower(text)) {
		return text
	}
	return quoted(text)
}

func oneLine(s string) string {
	return strings.Map(func(c rune) rune {
		if c < ' ' || c == 0x7f || c == '\u0085' || c == '\u2028' || c == '\u2029' {
			return ' '
		}
		return c
	}, s)
}
