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

const lockName = "LOCK" // file that the owner of a state directory locks

// ErrLocked is matched when another process owns a directory. The error names it.
var ErrLocked = errors.New("stop that one, or choose another directory")

// AcquireLock creates dir if need be and locks it, or returns an error that matches ErrLocked at
// once. Two servers on one store destroy each other's data without an error, so every writer locks
// first.
//
// Closing the file unlocks the directory, and so does the operating system when the process ends,
// in any way. The file stays: removing it would let two processes lock two files of one name.
func AcquireLock(dir string) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("state directory: %w", err)
	}
	file, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	err = filelock.Acquire(file)
	if errors.Is(err, filelock.ErrHeld) {
		// no content is written before the lock is held
		holder, _ := io.ReadAll(io.LimitReader(file, 512))
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
