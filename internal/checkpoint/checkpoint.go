package checkpoint

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Names in a directory of checkpoints.
const (
	// ManifestFile is the name of the manifest.
	ManifestFile  = "manifest.json"
	temporaryMark = ".tmp"
)

// kept is the number of checkpoints in a directory: the newest, and two older ones.
const kept = 3

// manifestBytesMax bounds the size of a manifest.
const manifestBytesMax = 1 << 20

// Dir is a directory of checkpoints. One goroutine uses it at a time.
type Dir struct {
	fs   FS
	path string
}

// Open returns the directory of checkpoints at path, which need not exist yet. It removes the
// remains of an interrupted Save, and the checkpoints that it had still to remove.
func Open(fs FS, path string) (*Dir, error) {
	d := &Dir{fs: fs, path: path}
	names, err := fs.List(path)
	if err != nil {
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, temporaryMark) ||
			strings.HasSuffix(name, ".damaged") { // which earlier builds kept
			if err := fs.RemoveAll(filepath.Join(path, name)); err != nil {
				return nil, fmt.Errorf("checkpoint: %w", err)
			}
		}
	}
	return d, d.prune()
}

// Look returns the directory of checkpoints at path for reading while a process may be writing
// there. Unlike Open it removes nothing. Save and Load, which do, must not be called on it.
func Look(fs FS, path string) *Dir { return &Dir{fs: fs, path: path} }

// Save makes the checkpoint durable and returns its size in bytes. After an error the directory has
// its previous contents, except for checkpoints at later positions, and perhaps a temporary remnant
// that the next Open or Save removes.
func (d *Dir) Save(c *Checkpoint) (size int64, err error) {
	m := &c.Manifest
	final := filepath.Join(d.path, FileName(m.Position))
	temporary := final + temporaryMark
	if there, err := d.readDir(final); err == nil && there.Manifest.Config == m.Config &&
		slices.Equal(there.Manifest.Classes, m.Classes) && there.Manifest.Derived == m.Derived &&
		there.Manifest.Stream == m.Stream {
		return 0, nil // the same state is there already
	}
	if err := d.prepare(final, temporary); err != nil {
		return 0, fmt.Errorf("checkpoint at %d: %w", m.Position, err)
	}
	size, err = d.write(temporary, c)
	if err == nil {
		_, err = d.readDir(temporary) // as Load will
	}
	if err == nil {
		// The state was not restored from later checkpoints: they are damaged, of another
		// configuration, or beyond the output log, and would keep new ones out. They are removed
		// before this one is in place: after a crash in between the next Open keeps the newest.
		err = d.drop(func(p uint64) bool { return p > m.Position })
	}
	if err == nil {
		err = d.commit(temporary, final)
	}
	if err != nil {
		err = errors.Join(err, d.fs.RemoveAll(temporary))
		return size, fmt.Errorf("checkpoint at %d: %w", m.Position, err)
	}
	return size, d.prune()
}

// FileName returns the name of the directory of a checkpoint, which orders as positions do.
func FileName(position uint64) string { return fmt.Sprintf("%020d", position) }

// prepare makes an empty temporary directory. A checkpoint in the final place is damaged, or of
// another configuration, and is removed.
func (d *Dir) prepare(final, temporary string) error {
	return errors.Join(d.fs.Mkdir(d.path), d.fs.RemoveAll(temporary), d.fs.RemoveAll(final),
		d.fs.Mkdir(temporary))
}

func (d *Dir) commit(temporary, final string) error {
	if err := d.fs.SyncDir(temporary); err != nil {
		return err
	}
	if err := d.fs.Rename(temporary, final); err != nil {
		return err
	}
	return d.fs.SyncDir(d.path)
}

// write writes the sections, then the manifest that names them.
func (d *Dir) write(dir string, c *Checkpoint) (size int64, err error) {
	for _, s := range c.Manifest.Sections {
		if err := d.writeFile(filepath.Join(dir, s.Name), c.Sections[s.Name]); err != nil {
			return size, fmt.Errorf("section %s: %w", s.Name, err)
		}
		size += s.Bytes
	}
	data, err := c.Manifest.encode()
	if err != nil {
		return size, err
	}
	return size + int64(len(data)), d.writeFile(filepath.Join(dir, ManifestFile), data)
}

// writeFile writes and syncs one file.
func (d *Dir) writeFile(name string, data []byte) error {
	f, err := d.fs.Create(name)
	if err != nil {
		return err
	}
	if _, err = f.Write(data); err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

func (d *Dir) manifest(dir string) (Manifest, error) {
	var data strings.Builder
	if err := d.read(filepath.Join(dir, ManifestFile), &data, manifestBytesMax); err != nil {
		return Manifest{}, err
	}
	return decodeManifest([]byte(data.String()))
}

// read copies at most one byte more than max, so that a longer file is noticed.
func (d *Dir) read(name string, w io.Writer, bytesMax int64) error {
	f, err := d.fs.Open(name)
	if err != nil {
		return err
	}
	_, err = io.Copy(w, io.LimitReader(f, bytesMax+1))
	return errors.Join(err, f.Close())
}

// List returns the positions of the checkpoints in the directory, newest first,
// whether or not they are intact.
func (d *Dir) List() ([]uint64, error) {
	names, err := d.fs.List(d.path)
	if err != nil {
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	var positions []uint64
	for _, name := range names {
		if p, err := strconv.ParseUint(name, 10, 64); err == nil && name == FileName(p) {
			positions = append(positions, p)
		}
	}
	slices.Sort(positions)
	slices.Reverse(positions)
	return positions, nil
}
