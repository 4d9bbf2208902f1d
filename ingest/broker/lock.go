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

// AcquireLock makes dir if need be and takes ownership of it at once, or returns
// a *LockedError that names the owner. Two servers on one store destroy each
// other's data without an error, so whoever writes there locks first.
//
// Whoever closes the file gives the directory up, and the operating system does when the
// process ends, however it ends. The file stays: removing it would let two processes lock two
// files of one name.
func AcquireLock(dir string) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("broker: state directory: %w", err)
	}
	file, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("broker: lock: %w", err)
	}
	err = filelock.Acquire(file)
	if err == nil {
		err = writeHolder(file)
	}
	if err != nil {
		defer file.Close()
		if errors.Is(err, filelock.ErrHeld) {
			return nil, &LockedError{Dir: dir, Holder: readHolder(file)}
		}
		return nil, fmt.Errorf("broker: lock %s: %w", file.Name(), err)
	}
	return file, nil
}

func writeHolder(file *os.File) error {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	text := fmt.Appendf(nil, "pid %d on host %s since %s\n", os.Getpid(), host, time.Now().UTC().Format(time.RFC3339))
	_, err = file.WriteAt(text, 0)
	return errors.Join(err, file.Truncate(int64(len(text))))
}

// readHolder returns the text that the owner wrote. Between taking the lock and writing it is
// that of the owner before, or none.
func readHolder(file *os.File) string {
	const holderBytesMax = 512
	text, err := io.ReadAll(io.NewSectionReader(file, 0, holderBytesMax))
	if holder := strings.TrimSpace(string(text)); err == nil && holder != "" {
		return holder
	}
	return "a process that has not yet written its name"
}
