package router

// OptionError is an option with which Debezium would not start, or would fail at
// every row.
type OptionError struct {
	Name  string // of the option in the connector's configuration
	Value string
	Text  string
	way   string
}

// Error names the option and what is wrong with it.
func (e *OptionError) Error() string {
	if e.Value == "" {
		return e.Name + ": " + e.Text
	}
	return e.Name + "=" + e.Value + ": " + e.Text
}

// Hint says in one line what to do.
func (e *OptionError) Hint() string { return e.way }

// hint gives the hint of an error that has one.
func hint(err error, otherwise string) string {
	if h, ok := err.(interface{ Hint() string }); ok {
		return h.Hint()
	}
	return otherwise
}
