package broker

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"gqlstream/internal/filelock"
)

const lockName = "LOCK" // of the file that the owner of a state directory keeps locked

// ErrLocked is matched when another process owns a directory. The error names it.
var ErrLocked = errors.New("stop that one, or choose another directory")

// AcquireLock makes dir if need be and takes ownership of it at once, or returns
// an error that matches ErrLocked. Two servers on one store destroy each
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
	if errors.Is(err, filelock.ErrHeld) {
		holder, _ := io.ReadAll(io.LimitReader(file, 512)) // nothing before it is written
		err = fmt.Errorf("%s is in use by another gqlstream (%s): %w",
			dir, bytes.TrimSpace(holder), ErrLocked)
	} else if err == nil {
		host, _ := os.Hostname()
		text := fmt.Appendf(nil, "pid %d on host %s since %s\n",
			os.Getpid(), host, time.Now().UTC().Format(time.RFC3339))
		_, err = file.WriteAt(text, 0)
		err = errors.Join(err, file.Truncate(int64(len(text))))
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}
