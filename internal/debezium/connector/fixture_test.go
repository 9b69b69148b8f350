package connector

import (
	"errors"
	"io/fs"
	"maps"
	"strings"
	"testing"
)

// base is a connector that runs as it is.
var base = map[string]string{
	"connector.class":             "io.debezium.connector.postgresql.PostgresConnector",
	"topic.prefix":                "app",
	"database.hostname":           "db",
	"database.user":               "debezium",
	"database.password":           "hunter2",
	"database.dbname":             "shop",
	"plugin.name":                 "pgoutput",
	"publication.autocreate.mode": "disabled",
	"table.include.list":          "public.outbox",
	"snapshot.mode":               "no_data",
	"key.converter":               classString,
	"value.converter":             classString,
	"transforms":                  "outbox",
	"transforms.outbox.type":      routerClass,
}

// with gives base with keys replaced; one without a value is taken out.
func with(keys map[string]string) map[string]string {
	m := maps.Clone(base)
	for key, value := range keys {
		if value == absent {
			delete(m, key)
			continue
		}
		m[key] = value
	}
	return m
}

const absent = "\x00"

// properties writes a map as a .properties file.
func properties(m map[string]string) []byte {
	var b strings.Builder
	escape := strings.NewReplacer(`\`, `\\`, ":", `\:`, "=", `\=`, " ", `\ `, "\n", `\n`, "#", `\#`, "!", `\!`)
	for _, p := range mapPairs(m) {
		b.WriteString(escape.Replace(p.key) + "=" + escape.Replace(p.value) + "\n")
	}
	return []byte(b.String())
}

// files is a file system.
type files map[string]string

func (f files) read(name string) ([]byte, error) {
	text, ok := f[name]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return []byte(text), nil
}

// readMap reads base with changes.
func readMap(t *testing.T, keys map[string]string, more ...func(*Options)) (*Spec, *Report, error) {
	t.Helper()
	opt := Options{Config: "c.properties", ConfigData: properties(with(keys)), ReadFile: files{}.read}
	for _, change := range more {
		change(&opt)
	}
	return Read(opt)
}

// entry finds what a report says about a key.
func entry(t *testing.T, r *Report, key string) Entry {
	t.Helper()
	for _, e := range r.Entries {
		if e.Key == key {
			return e
		}
	}
	t.Fatalf("the report has no key %s", key)
	return Entry{}
}

// entriesOf gives all entries of a key.
func entriesOf(r *Report, key string) []Entry {
	var list []Entry
	for _, e := range r.Entries {
		if e.Key == key {
			list = append(list, e)
		}
	}
	return list
}

// texts gives the lines of an error and its hints.
func texts(err error) string {
	var b strings.Builder
	var list Errors
	if one, ok := errors.AsType[*Error](err); ok {
		list = Errors{one}
	} else if many, ok := errors.AsType[Errors](err); ok {
		list = many
	} else if err != nil {
		return "not of the package: " + err.Error()
	}
	for _, e := range list {
		b.WriteString(e.Text + "\n  " + e.Way + "\n")
	}
	return b.String()
}

// caPEM is a certificate authority, for configurations that name one.
const caPEM = `-----BEGIN CERTIFICATE-----
MIIBdTCCARugAwIBAgIUfiKMNDuOcwVqmZ55yRe/nupb1hkwCgYIKoZIzj0EAwIw
DzENMAsGA1UEAwwEdGVzdDAgFw0yNjEyMDIwOTAwMDZaGA8yMTI2MTEwODA5MDAw
NlowDzENMAsGA1UEAwwEdGVzdDBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABDV3
2JjpAvkuVviv2WU0M3I2HdXGx5jcWTjiEi3B/aVac1b+e/GaUUlJc6lwdvdNFxez
bjOs4lWmeZwg7sniROejUzBRMB0GA1UdDgQWBBS+fD6lOtDWUJcOzUvcPtwTRwwq
+zAfBgNVHSMEGDAWgBS+fD6lOtDWUJcOzUvcPtwTRwwq+zAPBgNVHRMBAf8EBTAD
AQH/MAoGCCqGSM49BAMCA0gAMEUCIHYeI+AhxZP94bdEGqnlOdu9P0c/KHEXPHS3
MttoYSGsAiEA0eSWwQrdaiOnYwMGKk0wksrBum3quoQwjO+1c5id4Q4=
-----END CERTIFICATE-----
`
