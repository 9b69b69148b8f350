package offsets

// Error says why a stored offset cannot be read.
type Error struct {
	Text string
	Way  string
}

func (e *Error) Error() string { return e.Text }

// Hint is the line printed below the error.
func (e *Error) Hint() string { return e.Way }
