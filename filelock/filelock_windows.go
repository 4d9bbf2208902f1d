package filelock

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// Acquire takes an exclusive lock without waiting. It locks one byte far behind
// the text, because on this system others cannot read what is locked.
func Acquire(file *os.File) error {
	const farAway = 1 << 30
	at := windows.Overlapped{Offset: farAway}
	err := windows.LockFileEx(windows.Handle(file.Fd()),
		windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, &at)
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) || errors.Is(err, windows.ERROR_IO_PENDING) {
		return ErrHeld
	}
	return err
}
