package sinks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// progress is the content of a small file beside an output in files: the place up to which the
// output is durable. The output is synced before it and cut back to it when it is opened, so
// that the output holds each record once.
type progress struct {
	Log    string          `json:"log"` // identity of the log in
	Cursor Cursor          `json:"cursor"`
	Bytes  int64           `json:"bytes,omitempty"` // of the file that is appended to
	From   uint64          `json:"from,omitempty"`  // the next part begins after this position
	State  json.RawMessage `json:"state,omitempty"` // of the follower
}

// Shelf stores the state of a follower. The workers of a group share one.
type Shelf interface {
	Read(ctx context.Context) ([]byte, error) // matches os.ErrNotExist where there is nothing
	Write(ctx context.Context, data []byte) error
	String() string // for people
}

// readShelf reads the progress on a shelf; if it is empty the error is os.ErrNotExist, and ErrNotOurs if it is
// damaged, or of another log, whose progress is returned.
func readShelf(ctx context.Context, s Shelf, log string) (p progress, err error) {
	data, err := s.Read(ctx)
	if err != nil {
		return p, err
	}
	if err := json.Unmarshal(data, &p); err != nil {
		return progress{}, fmt.Errorf(
			"%s is damaged (%w); it says what the output beside it holds: %w",
			s,
			err,
			ErrNotOurs,
		)
	}
	if p.Log != log {
		return p, fmt.Errorf("%s is of another log: %w", s, ErrNotOurs)
	}
	return p, nil
}

// writeShelf replaces the progress on a shelf.
func writeShelf(ctx context.Context, s Shelf, p progress) error {
	data, err := json.Marshal(p)
	if err != nil {
		return err
	}
	return s.Write(ctx, append(data, '\n'))
}

// fileShelf is a file.
type fileShelf struct {
	path string
	disk disk
}

// FileShelf returns a shelf that is a file.
func FileShelf(path string) Shelf { return fileShelf{path: path} }

func (f fileShelf) Read(context.Context) ([]byte, error) { return os.ReadFile(f.path) }

func (f fileShelf) String() string { return f.path }

func (f fileShelf) Write(_ context.Context, data []byte) error {
	return f.disk.replace(f.path, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// disk writes files; tests let its steps fail.
type disk struct {
	fault func(step string) error     // called before every step that a crash can precede; nil: nothing
	write func(w io.Writer) io.Writer // what writes to a file; nil: the file
}

func (d *disk) before(step string) error {
	if d.fault == nil {
		return nil
	}
	return d.fault(step)
}

func (d *disk) writer(w io.Writer) io.Writer {
	if d.write == nil {
		return w
	}
	return d.write(w)
}

// replace makes a file that appears whole or not at all, and is on the disk when it returns. What
// was not finished would take room on a disk that is full: it is removed.
func (d *disk) replace(name string, write func(io.Writer) error) error {
	temporary := name + temporarySuffix
	if err := d.before("create " + filepath.Base(name)); err != nil {
		return err
	}
	f, err := os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	if err = write(d.writer(f)); err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = d.before("rename " + filepath.Base(name))
	}
	if err == nil {
		err = os.Rename(temporary, name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(temporary))
	}
	if err := d.before("sync directory"); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(name))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
