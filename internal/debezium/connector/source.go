package connector

import (
	"bytes"
	"maps"
	"path"
	"slices"
	"strings"
)

// pair is a key and a value as a file has them.
type pair struct {
	key   string
	value string
	line  int // 0: not known
}

// maxFile bounds what is read: a configuration is some kilobytes.
const maxFile = 1 << 20

// readPairs reads any of the forms. A file that is JSON begins with a brace;
// YAML is known by its name.
func readPairs(name string, data []byte) ([]pair, error) {
	if len(data) > maxFile {
		return nil, &Error{Text: name + ": larger than 1 MiB", Way: "name the connector's configuration"}
	}
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	text := bytes.TrimSpace(data)
	switch ext := strings.ToLower(path.Ext(name)); {
	case len(text) == 0:
		return nil, &Error{Text: name + ": the file is empty", Way: jsonWay}
	case text[0] == '{':
		return readJSON(name, data)
	case text[0] == '[' && ext != ".properties":
		return nil, &Error{Text: name + ": the file holds an array", Way: "put one connector in one file: " + jsonWay}
	case ext == ".json":
		return readJSON(name, data)
	case ext == ".yaml", ext == ".yml":
		return readYAML(name, data)
	}
	pairs, err := readProperties(name, data, true)
	if err == nil && isServer(pairs) {
		return readProperties(name, data, false)
	}
	return pairs, err
}

// isServer says that the keys are those of Debezium Server.
func isServer(pairs []pair) bool {
	return slices.ContainsFunc(pairs, func(p pair) bool {
		key := p.key
		if strings.HasPrefix(key, "%") {
			_, key, _ = strings.Cut(key, ".")
		}
		for _, prefix := range []string{"debezium.source.", "debezium.sink.", "debezium.transforms", "debezium.format."} {
			if strings.HasPrefix(key, prefix) {
				return true
			}
		}
		return false
	})
}

// mapPairs orders a map.
func mapPairs(m map[string]string) []pair {
	pairs := make([]pair, 0, len(m))
	for _, key := range slices.Sorted(maps.Keys(m)) {
		pairs = append(pairs, pair{key: key, value: m[key]})
	}
	return pairs
}
