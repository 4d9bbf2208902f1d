// Package filelock locks open files against other owners. The operating system gives a
// lock up when the file is closed, and so when the process ends, however it ends.
package filelock

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// ErrHeld is returned by Acquire when another open file holds the lock.
var ErrHeld = errors.New("another process holds the lock of the file")

// Acquire takes an exclusive lock without waiting. The lock belongs to the open
// file, so it also excludes a second owner in the same process.
func Acquire(file *os.File) error {
	err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return ErrHeld
	}
	return err
}
