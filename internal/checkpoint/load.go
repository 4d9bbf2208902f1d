package checkpoint

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/cespare/xxhash/v2"

	"gqlstream/incremental/parallel"
)

// Checkpoint is a checkpoint to be saved, or an intact one that was read and verified.
type Checkpoint struct {
	Manifest Manifest
	Sections map[string][]byte
}

// New returns a checkpoint without sections; see Add.
func New(m Manifest) *Checkpoint {
	m.Format, m.Sections = Format, nil
	return &Checkpoint{Manifest: m, Sections: map[string][]byte{}}
}

// Add adds a section, a part of the state. Its name is a file name, such as vertices.arrow.
func (c *Checkpoint) Add(name string, data []byte) {
	c.Sections[name] = data
	c.Manifest.Sections = append(c.Manifest.Sections,
		Entry{Name: name, Bytes: int64(len(data)), Checksum: hexSum(xxhash.Sum64(data))})
}

// Load returns the newest intact checkpoint, or nil if there is none, and reports newer damaged
// ones, which stay until a Save removes them. A checkpoint of a newer release stops the search,
// since an older one would undo the work of that release. So does one of an older release, since
// the log may not reach back to its beginning.
func (d *Dir) Load(tell func(damage error)) (*Checkpoint, error) {
	return d.LoadWhere(nil, tell)
}

// LoadWhere is Load among the checkpoints of this release with manifests that satisfy a condition;
// nil: among all.
func (d *Dir) LoadWhere(holds func(*Manifest) bool, tell func(damage error)) (*Checkpoint, error) {
	positions, err := d.List()
	if err != nil {
		return nil, err
	}
	for _, p := range positions {
		m, err := d.manifest(filepath.Join(d.path, FileName(p)))
		if holds != nil && (errors.Is(err, ErrFormat) || err == nil && !holds(&m)) {
			continue
		}
		c, err := d.Read(p)
		switch {
		case err == nil:
			return c, nil
		case errors.Is(err, ErrFormat):
			return nil, fmt.Errorf("%s: %w", d.path, err)
		}
		tell(err)
	}
	return nil, nil
}

// CheckFormat returns an error that matches ErrFormat if another release wrote the newest
// checkpoint.
func (d *Dir) CheckFormat() error {
	positions, err := d.List()
	if err != nil || len(positions) == 0 {
		return err
	}
	if _, err = d.manifest(filepath.Join(d.path, FileName(positions[0]))); errors.Is(err,
		ErrFormat) {
		return fmt.Errorf("%s: checkpoint %d: %w", d.path, positions[0], err)
	}
	return nil // damaged ones are skipped
}

// Manifests returns the intact manifests of this release, newest first. It does not read the
// sections.
func (d *Dir) Manifests() (list []Manifest) {
	positions, _ := d.List() // Open reports the error
	for _, p := range positions {
		if m, err := d.manifest(filepath.Join(d.path, FileName(p))); err == nil && m.Position == p {
			list = append(list, m)
		}
	}
	return list
}

// Read returns the checkpoint of one position, after verifying all of it.
func (d *Dir) Read(position uint64) (*Checkpoint, error) {
	c, err := d.readDir(filepath.Join(d.path, FileName(position)))
	if err != nil {
		return nil, fmt.Errorf("checkpoint %d: %w", position, err)
	}
	if c.Manifest.Position != position {
		return nil, fmt.Errorf("checkpoint %d: its manifest says position %d",
			position, c.Manifest.Position)
	}
	return c, nil
}

func (d *Dir) readDir(dir string) (*Checkpoint, error) {
	m, err := d.manifest(dir)
	if err != nil {
		return nil, err
	}
	read := make([][]byte, len(m.Sections))
	errs := make([]error, len(m.Sections))
	parallel.Each(len(m.Sections),
		func(i, _ int) { read[i], errs[i] = d.section(dir, m.Sections[i]) })
	c := &Checkpoint{Manifest: m, Sections: map[string][]byte{}}
	for i, entry := range m.Sections {
		if errs[i] != nil {
			return nil, fmt.Errorf("section %q: %w", entry.Name, errs[i])
		}
		c.Sections[entry.Name] = read[i]
	}
	return c, nil
}

// Verify reads and verifies the checkpoint of one position without storing it in memory, and
// returns its manifest.
func (d *Dir) Verify(position uint64) (Manifest, error) {
	dir := filepath.Join(d.path, FileName(position))
	m, err := d.manifest(dir)
	if err == nil && m.Position != position {
		err = fmt.Errorf("its manifest says position %d", m.Position)
	}
	for _, entry := range m.Sections {
		if err == nil {
			err = d.verifySection(dir, entry)
		}
	}
	if err != nil {
		return m, fmt.Errorf("checkpoint %d: %w", position, err)
	}
	return m, nil
}

func (d *Dir) verifySection(dir string, entry Entry) error {
	if filepath.Base(entry.Name) != entry.Name {
		return fmt.Errorf("section %q: it is not a file name", entry.Name)
	}
	sum := xxhash.New()
	if err := d.read(filepath.Join(dir, entry.Name), sum, entry.Bytes); err != nil {
		return fmt.Errorf("section %q: %w", entry.Name, err)
	}
	if got := hexSum(sum.Sum64()); got != entry.Checksum { // covers the length too: more was read
		return fmt.Errorf("section %q: checksum %s, the manifest says %s",
			entry.Name, got, entry.Checksum)
	}
	return nil
}

// section reads one section and verifies its length and checksum.
func (d *Dir) section(dir string, entry Entry) ([]byte, error) {
	if filepath.Base(entry.Name) != entry.Name {
		return nil, errors.New("it is not a file name")
	}
	// stated by a manifest with a valid checksum
	data := bytes.NewBuffer(make([]byte, 0, entry.Bytes+bytes.MinRead))
	if err := d.read(filepath.Join(dir, entry.Name), data, entry.Bytes); err != nil {
		return nil, err
	}
	if got := hexSum(xxhash.Sum64(data.Bytes())); int64(data.Len()) != entry.Bytes ||
		got != entry.Checksum {
		return nil, fmt.Errorf("%d bytes with checksum %s, the manifest says %d with %s",
			data.Len(), got, entry.Bytes, entry.Checksum)
	}
	return data.Bytes(), nil
}
