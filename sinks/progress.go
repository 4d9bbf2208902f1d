package sinks

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/cespare/xxhash/v2"
)

// progress is the content of the position file beside an output file: the place up to which the
// output is durable. The output is synced before it is written, and cut back to it when it is
// opened, so that the output holds each record once.
type progress struct {
	Log    string          `json:"log"` // identity of the input log
	Cursor Cursor          `json:"cursor"`
	Bytes  int64           `json:"bytes,omitempty"` // of the file that is appended to
	From   uint64          `json:"from,omitempty"`  // the next part begins after this position
	State  json.RawMessage `json:"state,omitempty"` // of the follower
}

// checksumKey begins the last field of a progress: xxhash64 of all before it, 16 hexadecimal
// digits. Earlier releases wrote none.
const checksumKey = `,"checksum":"`

// encode returns the progress as it is written.
func (p progress) encode() ([]byte, error) {
	data, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	data = data[:len(data)-1]
	return fmt.Appendf(data, checksumKey+"%016x\"}\n", xxhash.Sum64(data)), nil
}

// decodeProgress reads a progress and verifies its checksum.
func decodeProgress(data []byte) (p progress, err error) {
	if err := json.Unmarshal(data, &p); err != nil {
		return progress{}, err
	}
	at := bytes.LastIndex(data, []byte(checksumKey))
	if at < 0 { // of an earlier release, which had no other keys; a damaged checksum is one
		strict := json.NewDecoder(bytes.NewReader(data))
		strict.DisallowUnknownFields()
		return p, strict.Decode(new(progress))
	}
	if want := fmt.Sprintf(checksumKey+"%016x\"}\n",
		xxhash.Sum64(data[:at])); want != string(data[at:]) {
		return progress{}, errors.New("it does not match its checksum")
	}
	return p, nil
}

// StatePlace returns the name of the log in stored state, and the cursor of its output. A
// missing or damaged state gives the zero Cursor: opening the output reports the problem.
func StatePlace(ctx context.Context, s StateStore) (log string, at Cursor) {
	data, err := s.Read(ctx)
	if err != nil {
		return "", at
	}
	p, _ := decodeProgress(data)
	return p.Log, p.Cursor
}

// VerifyState returns an error if the stored state is damaged.
func VerifyState(ctx context.Context, s StateStore) error {
	data, err := s.Read(ctx)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err == nil {
		_, err = decodeProgress(data)
	}
	if err != nil {
		return fmt.Errorf("%s is damaged: %w", s, err)
	}
	return nil
}

// ResetState makes a follower of alerts or roll-ups restart with the published records of a log.
func ResetState(ctx context.Context, s StateStore, log string) error {
	return writeState(ctx, s, progress{Log: log})
}

// StateStore stores the state of a follower. The workers of a group share one.
type StateStore interface {
	Read(ctx context.Context) ([]byte, error) // matches os.ErrNotExist where there is nothing
	Write(ctx context.Context, data []byte) error
	String() string // for people
}

// readState reads the stored progress; without one the error is os.ErrNotExist, and ErrNotOurs if
// it is damaged, or of another log. The progress of the other log is returned.
func readState(ctx context.Context, s StateStore, log string) (p progress, err error) {
	data, err := s.Read(ctx)
	if err != nil {
		return p, err
	}
	if p, err = decodeProgress(data); err != nil {
		return progress{}, fmt.Errorf(
			"%s is damaged (%w); it has the position of the output next to it: %w",
			s, err, ErrNotOurs)
	}
	if p.Log != log {
		return p, fmt.Errorf("%s is of another log: %w", s, ErrNotOurs)
	}
	return p, nil
}

// writeState replaces the stored progress.
func writeState(ctx context.Context, s StateStore, p progress) error {
	data, err := p.encode()
	if err != nil {
		return err
	}
	return s.Write(ctx, data)
}

// fileStore is a file.
type fileStore struct {
	path string
	disk disk
}

// FileStore returns storage in a file.
func FileStore(path string) StateStore { return fileStore{path: path} }

func (f fileStore) Read(context.Context) ([]byte, error) { return os.ReadFile(f.path) }

func (f fileStore) String() string { return f.path }

func (f fileStore) Write(_ context.Context, data []byte) error {
	return f.disk.replace(f.path, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// disk writes files; tests let its steps fail.
type disk struct {
	// called before every step that a crash can precede; nil: nothing
	fault func(step string) error
	write func(w io.Writer) io.Writer // the writer of a file; nil: the file
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

// replace writes a file that appears whole or not at all, and is on the disk when it returns. An
// unfinished file is removed, so that it does not take space on a full disk.
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
