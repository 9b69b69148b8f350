package connector

import "github.com/walpost/walpost/internal/config"

// A connector's file is configuration, and its faults are told in the same way.
type (
	// Error is one fault of a file.
	Error = config.Error
	// Errors are all faults that were found, in the order of the file.
	Errors = config.Errors
)
