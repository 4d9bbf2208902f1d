// Package filelock locks open files against other owners. The operating system gives a
// lock up when the file is closed, and so when the process ends, however it ends.
package filelock

import "errors"

// ErrHeld is returned by Acquire when another open file holds the lock.
var ErrHeld = errors.New("another process holds the lock of the file")
