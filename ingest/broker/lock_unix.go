//go:build unix

package broker

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// errFileLocked is returned by lockFile when another open file holds the lock.
var errFileLocked = errors.New("file is locked")

// lockFile takes an exclusive lock without waiting. The lock belongs to the open
// file, so it also excludes a second owner in the same process.
func lockFile(file *os.File) error {
	for {
		err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EWOULDBLOCK):
			return errFileLocked
		}
		return err
	}
}
