package broker

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"gqlstream/filelock"
)

const lockName = "LOCK" // of the file that the owner of a state directory keeps locked

// LockedError says that another process owns a directory.
type LockedError struct {
	Dir    string
	Holder string // what the owner wrote about itself
}

func (e *LockedError) Error() string {
	return fmt.Sprintf("%s is in use by another gqlstream (%s); stop that one, or choose another"+
		" directory", e.Dir, e.Holder)
}

// Lock is the ownership of a state directory. Two servers on one store destroy
// each other's data without an error, so whoever writes there locks first. The
// operating system gives the lock up when the process ends, however it ends.
type Lock struct {
	file *os.File
}

// AcquireLock makes dir if need be and takes ownership of it at once, or returns
// a *LockedError that names the owner.
func AcquireLock(dir string) (*Lock, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("broker: state directory: %w", err)
	}
	file, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("broker: lock: %w", err)
	}
	if err := filelock.Acquire(file); err != nil {
		defer file.Close()
		if errors.Is(err, filelock.ErrHeld) {
			return nil, &LockedError{Dir: dir, Holder: readHolder(file)}
		}
		return nil, fmt.Errorf("broker: lock %s: %w", file.Name(), err)
	}
	if err := writeHolder(file); err != nil {
		file.Close()
		return nil, fmt.Errorf("broker: lock %s: %w", file.Name(), err)
	}
	return &Lock{file: file}, nil
}

// Release gives the directory up. The file stays: removing it would let two
// processes lock two files of one name. Release of a nil lock does nothing.
func (l *Lock) Release() error {
	if l == nil || l.file == nil {
		return nil
	}
	err := errors.Join(l.file.Truncate(0), l.file.Close())
	l.file = nil
	if err != nil {
		return fmt.Errorf("broker: release lock: %w", err)
	}
	return nil
}

func writeHolder(file *os.File) error {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	if err := file.Truncate(0); err != nil {
		return err
	}
	_, err = file.WriteAt(fmt.Appendf(nil, "pid %d on host %s since %s\n",
		os.Getpid(), host, time.Now().UTC().Format(time.RFC3339)), 0)
	return err
}

// readHolder returns the text that the owner wrote. The owner may be between taking the lock and
// writing; then all that is known is that it exists.
func readHolder(file *os.File) string {
	const holderBytesMax = 512
	text, err := io.ReadAll(io.NewSectionReader(file, 0, holderBytesMax))
	if holder := strings.TrimSpace(string(text)); err == nil && holder != "" {
		return holder
	}
	return "a process that has not yet written its name"
}
