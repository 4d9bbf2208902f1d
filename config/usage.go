package config

import "fmt"

// UsageError marks an error that the user mends by changing arguments or
// configuration; it decides the exit code.
type UsageError struct{ error }

func (e UsageError) Unwrap() error { return e.error }

// Usage marks err as one that the user mends.
func Usage(err error) error { return UsageError{err} }

// Usagef returns such an error with a formatted message.
func Usagef(format string, args ...any) error { return UsageError{fmt.Errorf(format, args...)} }
