package connector

import (
	"fmt"
	"regexp"
	"strings"
)

// reference is Kafka Connect's ${provider:path:key}, as its ConfigTransformer
// finds it. ${routedByValue} has no colon and is none.
var reference = regexp.MustCompile(`\$\{([^}]*?):(([^}]*?):)?([^}]*?)\}`)

// The classes of Kafka's own providers.
const (
	providerPackage   = "org.apache.kafka.common.config.provider."
	providerEnv       = providerPackage + "EnvVarConfigProvider"
	providerFile      = providerPackage + "FileConfigProvider"
	providerDirectory = providerPackage + "DirectoryConfigProvider"
)

// providers are the names that are used where no worker file declares others.
var providers = map[string]string{
	"env": providerEnv, "file": providerFile,
	"dir": providerDirectory, "directory": providerDirectory,
}

// resolver replaces references.
type resolver struct {
	env       map[string]string
	readFile  func(string) ([]byte, error)
	providers map[string]string // name to class
}

// resolve replaces the references of one value. secret says that one of them
// names something secret.
func (r *resolver) resolve(value string) (resolved string, secret bool, err error) {
	resolved = reference.ReplaceAllStringFunc(value, func(text string) string {
		m := reference.FindStringSubmatch(text)
		provider, path, key := m[1], m[3], m[4]
		secret = secret || isSecretName(key)
		v, e := r.one(provider, path, key)
		if e != nil && err == nil {
			err = fmt.Errorf("%s: %w", text, e)
		}
		return v
	})
	if err != nil {
		return value, secret, err
	}
	return resolved, secret, nil
}

func (r *resolver) one(provider, path, key string) (string, error) {
	class, ok := r.providers[provider]
	if !ok {
		return "", &Error{
			Text: fmt.Sprintf("config provider %q is not known", provider),
			Way:  "put the value into a file or a variable, and write ${file:path:key} or ${env:NAME}",
		}
	}
	switch class {
	case providerEnv:
		if path != "" {
			return "", &Error{Text: "${env:…} takes a name and nothing else", Way: "write ${env:NAME}"}
		}
		v, ok := r.env[key]
		if !ok {
			return "", &Error{Text: fmt.Sprintf("environment variable %s is not set", key), Way: "set it where walpost runs"}
		}
		return v, nil
	case providerFile:
		return r.fromFile(path, key)
	case providerDirectory:
		return r.fromDirectory(path, key)
	default:
		return "", &Error{
			Text: fmt.Sprintf("config provider %q is of class %s, which walpost does not have", provider, class),
			Way:  "put the value into a file or a variable, and write ${file:path:key} or ${env:NAME}",
		}
	}
}

func (r *resolver) fromFile(path, key string) (string, error) {
	data, err := r.readFile(path)
	if err != nil {
		return "", &Error{Text: err.Error(), Way: "make the file readable where walpost runs"}
	}
	// This provider reads UTF-8, other than Connect itself.
	pairs, err := readProperties(path, data, false)
	if err != nil {
		return "", err
	}
	for i := len(pairs) - 1; i >= 0; i-- {
		if pairs[i].key == key {
			return pairs[i].value, nil
		}
	}
	return "", &Error{Text: fmt.Sprintf("%s has no key %q", path, key), Way: "write the key into the file, or name one that is in it"}
}

func (r *resolver) fromDirectory(path, key string) (string, error) {
	if key == "" || strings.ContainsAny(key, `/\`) || key == ".." || key == "." {
		return "", &Error{Text: fmt.Sprintf("%q is not the name of a file in a directory", key), Way: "write ${dir:path:name}"}
	}
	data, err := r.readFile(strings.TrimSuffix(path, "/") + "/" + key)
	if err != nil {
		return "", &Error{Text: err.Error(), Way: "make the file readable where walpost runs"}
	}
	return string(data), nil
}
