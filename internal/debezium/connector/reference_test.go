package connector

import (
	"errors"
	"testing"

	"github.com/walpost/walpost/internal/config"
)

func TestReferences(t *testing.T) {
	t.Parallel()
	r := &resolver{
		env: map[string]string{"HOST": "db", "EMPTY": ""},
		readFile: files{
			"/s/db.properties": "user=u\nuser=last\npass\\:word=a\\=b\n", "/s/dir/key": "raw\n", "a:b": "k=v",
		}.read,
		providers: map[string]string{"env": providerEnv, "file": providerFile, "dir": providerDirectory, "vault": "x.VaultProvider"},
	}
	for text, want := range map[string]string{
		"plain": "plain", "${routedByValue}": "${routedByValue}", "$1-${name}": "$1-${name}",
		"${env:HOST}:5432": "db:5432", "${env:EMPTY}": "", "${file:/s/db.properties:user}": "last",
		"${file:/s/db.properties:pass:word}": "a=b", "${dir:/s/dir:key}": "raw\n", "${dir:/s/dir/:key}": "raw\n",
		"${env:HOST}${env:HOST}": "dbdb",
	} {
		got, _, err := r.resolve(text)
		if err != nil || got != want {
			t.Errorf("%s: got %q, %v, want %q", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"${env:NO}":                   "${env:NO}: environment variable NO is not set",
		"${env:a:b}":                  "${env:a:b}: ${env:…} takes a name and nothing else",
		"${file:/s/db.properties:no}": `${file:/s/db.properties:no}: /s/db.properties has no key "no"`,
		"${file:/none:x}":             "${file:/none:x}: open /none: file does not exist",
		"${dir:/s:../x}":              `${dir:/s:../x}: "../x" is not the name of a file in a directory`,
		"${vault:a:b}":                `${vault:a:b}: config provider "vault" is of class x.VaultProvider, which walpost does not have`,
		"${secrets:ns/name:key}":      `${secrets:ns/name:key}: config provider "secrets" is not known`,
	} {
		got, _, err := r.resolve(text)
		if err == nil || err.Error() != want || got != text || hintOf(err) == "" {
			t.Errorf("%s: got %q, %v, want error %s", text, got, err, want)
		}
	}
}

func TestReferencesAreRead(t *testing.T) {
	t.Parallel()
	keys := map[string]string{
		"database.hostname": "${env:DB_HOST}", "database.password": "${file:/s:pw}", "heartbeat.action.query": "x ${env:API_TOKEN}",
	}
	change := func(o *Options) {
		o.Environ, o.ReadFile = []string{"DB_HOST=db1", "API_TOKEN=t0k"}, files{"/s": "pw=hunter2"}.read
	}
	spec, report, err := readMap(t, keys, change)
	if err != nil {
		t.Fatal(err)
	}
	if d := spec.Database; d.Hostname != "db1" || d.Password != "hunter2" || spec.HeartbeatQuery != "x t0k" {
		t.Errorf("got %+v, %q", d, spec.HeartbeatQuery)
	}
	for key, want := range map[string]string{
		"database.hostname": "db1", "database.password": config.Masked, "heartbeat.action.query": config.Masked,
	} {
		if got := entry(t, report, key).Value; got != want {
			t.Errorf("%s: shown as %q, want %q", key, got, want)
		}
	}
}

func TestUnresolvedReference(t *testing.T) {
	t.Parallel()
	keys := map[string]string{"database.hostname": "${env:DB_HOST}", "database.port": "${env:DB_PORT}", "topic.prefix": "${file:/x:y}"}
	_, _, err := readMap(t, keys)
	if list, ok := errors.AsType[Errors](err); !ok || len(list) != 3 {
		t.Fatalf("got %v, want all three", err)
	}
	spec, report, err := readMap(t, keys, func(o *Options) { o.Lenient = true })
	if err != nil {
		t.Fatal(err)
	}
	if e := entry(t, report, "database.port"); e.Severity != SeverityNote || e.Value != "${env:DB_PORT}" {
		t.Errorf("got %+v", e)
	}
	if errs := spec.unreadable(); len(errs) != 2 {
		t.Errorf("got %v, want hostname and port", errs)
	}
}

func TestWorkerDeclaresProviders(t *testing.T) {
	t.Parallel()
	worker := "config.providers=secrets\nconfig.providers.secrets.class=" + providerFile + "\n"
	keys := map[string]string{"database.password": "${secrets:/s:pw}"}
	change := func(o *Options) {
		o.Worker, o.WorkerData, o.ReadFile = "w", []byte(worker), files{"/s": "pw=hunter2"}.read
	}
	spec, _, err := readMap(t, keys, change)
	if err != nil || spec.Database.Password != "hunter2" {
		t.Fatalf("got %v", err)
	}
	keys["database.password"] = "${file:/s:pw}"
	if _, _, err := readMap(t, keys, change); err == nil {
		t.Error("a provider that the worker does not declare: got no error")
	}
}

func TestExpand(t *testing.T) {
	t.Parallel()
	x := &expander{
		env:  map[string]string{"HOST": "db", "DB_USER": "u", "N": "${M}", "M": "m", "LOOP": "${LOOP}", "A": "${B}${B}"},
		file: map[string]string{"app.name": "${HOST}-app", "B": "${C}${C}", "C": "${A}${A}"},
	}
	for text, want := range map[string]string{
		"": "", "plain $1 $": "plain $1 $", "$${routedByValue}": "${routedByValue}", `\${x}`: "${x}", "$$1": "$1",
		"${HOST}": "db", "${db.user}": "u", "${NO:}": "", "${NO:x:y}": "x:y", "${NO:${HOST}}": "db", "${NO:${ALSO:d}}!": "d!",
		"${app.name}": "db-app", "${N}": "m", "${HOST:${NO}}": "db", "a:b}": "a:b}",
	} {
		got, err := x.expand(text)
		if err != nil || got != want {
			t.Errorf("%s: got %q, %v, want %q", text, got, err, want)
		}
	}
	for _, text := range []string{"${NO}", "${HOST", "${NO:x", "${LOOP}", "${A}", "${aes-gcm-nopadding::x}", "${}", "${${HOST}"} {
		if got, err := x.expand(text); err == nil {
			t.Errorf("%s: got %q and no error", text, got)
		} else if hintOf(err) == "" {
			t.Errorf("%s: no hint with %v", text, err)
		}
	}
}

func TestJAAS(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`a.PlainLoginModule required username="u" password="p";`:                     "u p",
		"a.PlainLoginModule required\n  username='u'\n  password='p w';\n":           "u p w",
		`a.PlainLoginModule required username=u password="a\"b\\c;d" serviceName=x;`: `u a"b\c;d`,
		`a.PlainLoginModule required username = "u" password = "p" ;`:                "u p",
	} {
		j, ok := parseJAAS(text)
		if got := j.options["username"] + " " + j.options["password"]; !ok || got != want || short(j.module) != "PlainLoginModule" {
			t.Errorf("%s: got %q, %v", text, got, ok)
		}
	}
	for _, text := range []string{
		"", "a", "a required", "a required x", "a required x=;", "a required x=1", `a required x="1;`, "a required x=1; b required;", ";",
	} {
		if _, ok := parseJAAS(text); ok {
			t.Errorf("%q: got no error", text)
		}
	}
}
