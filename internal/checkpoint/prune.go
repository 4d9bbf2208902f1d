package checkpoint

import (
	"fmt"
	"path/filepath"
)

// keepErased is the number of checkpoints after an erasure at which the earlier ones are dropped.
const keepErased = 2

// prune drops all checkpoints older than the newest kept ones. Once the two newest are from after
// an erasure, it also drops those that still hold the erased data.
func (d *Dir) prune() error {
	positions, err := d.List()
	if err != nil || len(positions) < keepErased {
		return err
	}
	oldest := uint64(0)
	// a damaged one is no reason to drop others
	if m, err := d.manifest(filepath.Join(d.path, FileName(positions[keepErased-1]))); err == nil {
		oldest = m.Erased
	}
	if len(positions) > kept {
		oldest = max(oldest, positions[kept-1])
	}
	return d.DropBefore(oldest)
}

// DropBefore drops every checkpoint of a lower position, damaged ones included.
func (d *Dir) DropBefore(position uint64) error {
	return d.drop(func(p uint64) bool { return p < position })
}

// drop drops the checkpoints of some positions.
func (d *Dir) drop(which func(position uint64) bool) error {
	positions, err := d.List()
	for _, p := range positions {
		if err == nil && which(p) {
			err = d.fs.RemoveAll(filepath.Join(d.path, FileName(p)))
		}
	}
	if err != nil {
		return fmt.Errorf("checkpoint: drop those that are not needed: %w", err)
	}
	return nil
}

// Drop drops the checkpoints with manifests that satisfy a condition.
func (d *Dir) Drop(which func(Manifest) bool) error {
	drop := map[uint64]bool{}
	for _, m := range d.Manifests() {
		drop[m.Position] = which(m)
	}
	return d.drop(func(p uint64) bool { return drop[p] })
}
