package checkpoint

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
)

// keepErased is the number of checkpoints from after an erasure that it takes for those from
// before it to go.
const keepErased = 2

// prune drops all that is older than the newest kept checkpoints, and what still holds what was
// erased, as soon as the two newest are from after the erasure and intact. What was set aside as
// damaged goes by the same rule.
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
	if older, err := d.before(m.Erased); err != nil || len(older) == 0 {
		return 0, err
	}
	for _, position := range newest {
		if _, err := d.Read(position); err != nil {
			return 0, nil
		}
	}
	return m.Erased, nil
}

// before returns the names of the checkpoints of a lower position, damaged ones included.
func (d *Dir) before(position uint64) (older []string, err error) {
	names, err := d.fs.List(d.path)
	for _, name := range names {
		number := strings.TrimSuffix(name, damagedMark)
		if p, err := strconv.ParseUint(number, 10, 64); err == nil && p < position && number == fileName(p) {
			older = append(older, name)
		}
	}
	return older, err
}

// DropBefore drops every checkpoint of a lower position, damaged ones included.
func (d *Dir) DropBefore(position uint64) error {
	older, err := d.before(position)
	for _, name := range older {
		if err == nil {
			err = d.fs.RemoveAll(filepath.Join(d.path, name))
		}
	}
	if err != nil {
		return fmt.Errorf("checkpoint: drop those before %d: %w", position, err)
	}
	return nil
}
