package checkpoint

import (
	"errors"
	"io"
	"os"
	"syscall"
)

// FS is the part of a file system that checkpoints need. Disk is the real one; the tests have one
// that loses data that was not synced.
type FS interface {
	Mkdir(dir string) error
	Create(name string) (File, error)
	Open(name string) (io.ReadCloser, error)
	Rename(from, to string) error
	RemoveAll(name string) error
	List(dir string) ([]string, error)
	SyncDir(dir string) error
}

// File is a file being written.
type File interface {
	io.WriteCloser
	Sync() error
}

// Disk is the file system of this machine.
type Disk struct{}

// Mkdir makes a directory and its parents.
func (Disk) Mkdir(dir string) error { return os.MkdirAll(dir, 0o700) }

// Create makes a file that does not exist yet.
func (Disk) Create(name string) (File, error) {
	return os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
}

// Open opens a file for reading.
func (Disk) Open(name string) (io.ReadCloser, error) { return os.Open(name) }

// Rename moves a file or directory.
func (Disk) Rename(from, to string) error { return os.Rename(from, to) }

// RemoveAll removes a file or a directory with all it holds.
func (Disk) RemoveAll(name string) error { return os.RemoveAll(name) }

// List returns the names in a directory, none when it does not exist.
func (Disk) List(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, err
}

// SyncDir makes the entries of a directory durable.
func (Disk) SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	if errors.Is(err, syscall.EINVAL) {
		err = nil // this file system has nothing to sync here
	}
	return errors.Join(err, d.Close())
}
