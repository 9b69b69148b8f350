package config

// Entry is one option of the reference.
type Entry struct {
	Name    string   `json:"name"`
	Group   string   `json:"group"`
	Flag    string   `json:"flag"`
	Env     string   `json:"env"`
	Kind    Kind     `json:"kind"`
	Default string   `json:"default"`
	Values  []string `json:"values,omitempty"`
	Secret  bool     `json:"secret,omitempty"`
	Help    string   `json:"help"`
}

// Reference is the option table for printing. A secret is followed by the
// option that reads it from a file.
func Reference() []Entry {
	options := Options()
	var entries []Entry
	for i := range options {
		o := &options[i]
		e := Entry{
			Name: o.Name, Group: o.Group, Flag: "--" + o.Flag, Env: o.Env(), Kind: o.Kind(),
			Default: o.Default, Values: o.Enum, Secret: o.Secret, Help: o.Help,
		}
		if o.NoFlag {
			e.Flag = ""
		}
		entries = append(entries, e)
		if o.Secret {
			entries = append(entries, Entry{
				Name: o.fileName(), Group: o.Group, Flag: "--" + o.fileFlag(), Env: o.fileEnv(), Kind: "file",
				Help: "file to read " + o.Name + " from",
			})
		}
	}
	return entries
}
