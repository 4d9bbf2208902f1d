package checkpoint

import (
	"fmt"
	"path/filepath"
)

// keepErased is the number of checkpoints from after an erasure that it takes for those from
// before it to go.
const keepErased = 2

// prune drops all that is older than the newest kept checkpoints, and what still holds what was
// erased, as soon as the two newest are from after the erasure and intact.
func (d *Dir) prune() error {
	positions, err := d.List()
	if err != nil || len(positions) < keepErased {
		return err
	}
	oldest, err := d.erased(positions[:keepErased])
	if err != nil {
		return err
	}
	if len(positions) > kept {
		oldest = max(oldest, positions[kept-1])
	}
	return d.DropBefore(oldest)
}

// erased returns the position before which nothing may be kept any more, or 0.
func (d *Dir) erased(newest []uint64) (uint64, error) {
	m, err := d.manifest(filepath.Join(d.path, fileName(newest[len(newest)-1])))
	if err != nil {
		return 0, nil // a damaged one is no reason to drop others
	}
	if positions, err := d.List(); err != nil || positions[len(positions)-1] >= m.Erased {
		return 0, err
	}
	for _, position := range newest {
		if _, err := d.Read(position); err != nil {
			return 0, nil
		}
	}
	return m.Erased, nil
}

// DropBefore drops every checkpoint of a lower position, damaged ones included.
func (d *Dir) DropBefore(position uint64) error {
	return d.drop(func(p uint64) bool { return p < position })
}

// dropBehind drops the checkpoints of higher positions than one that is being saved. Whoever saves has not gone on from
// those: they are damaged, of another configuration, or further than the log out. They would keep new ones out.
func (d *Dir) dropBehind(saved uint64) error {
	return d.drop(func(p uint64) bool { return p > saved })
}

// drop drops the checkpoints of some positions.
func (d *Dir) drop(which func(position uint64) bool) error {
	positions, err := d.List()
	for _, p := range positions {
		if err == nil && which(p) {
			err = d.fs.RemoveAll(filepath.Join(d.path, fileName(p)))
		}
	}
	if err != nil {
		return fmt.Errorf("checkpoint: drop those that are not needed: %w", err)
	}
	return nil
}
