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

// prune drops all but the newest kept checkpoints, and every one that still holds
// what was erased, as soon as the two newest are from after the erasure and intact.
// What was set aside as damaged goes by the same rule.
func (d *Dir) prune() error {
	positions, err := d.List()
	if err != nil {
		return err
	}
	var erased uint64
	if len(positions) >= keepErased {
		if erased, err = d.erasedBefore(positions); err != nil {
			return err
		}
	}
	keep := min(kept, len(positions))
	for keep > keepErased && positions[keep-1] < erased {
		keep--
	}
	for _, p := range positions[keep:] {
		if err := d.drop(fileName(p)); err != nil {
			return err
		}
	}
	return d.dropDamaged(erased)
}

// erasedBefore returns the position before which nothing may be kept, or 0.
func (d *Dir) erasedBefore(positions []uint64) (uint64, error) {
	name := func(i int) string { return filepath.Join(d.path, fileName(positions[i])) }
	m, err := d.manifest(name(keepErased - 1))
	if err != nil || m.Erased == 0 {
		return 0, nil // a damaged one is no reason to drop others
	}
	older := len(positions) > keepErased && positions[len(positions)-1] < m.Erased
	damaged, err := d.damagedBefore(m.Erased)
	if err != nil || !older && len(damaged) == 0 {
		return 0, err
	}
	for i := range keepErased {
		if _, err := d.readDir(name(i)); err != nil {
			return 0, nil
		}
	}
	return m.Erased, nil
}

// damagedBefore returns the names of what was set aside with a lower position.
func (d *Dir) damagedBefore(position uint64) ([]string, error) {
	names, err := d.SetAside()
	if err != nil {
		return nil, err
	}
	var older []string
	for _, name := range names {
		p, err := strconv.ParseUint(strings.TrimSuffix(name, damagedMark), 10, 64)
		if err == nil && p < position {
			older = append(older, name)
		}
	}
	return older, nil
}

func (d *Dir) dropDamaged(position uint64) error {
	names, err := d.damagedBefore(position)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := d.drop(name); err != nil {
			return err
		}
	}
	return nil
}

// DropBefore drops every checkpoint of a lower position, damaged ones included, and
// returns how many there were.
func (d *Dir) DropBefore(position uint64) (int, error) {
	positions, err := d.List()
	if err != nil {
		return 0, err
	}
	names, err := d.damagedBefore(position)
	if err != nil {
		return 0, err
	}
	for _, p := range positions {
		if p < position {
			names = append(names, fileName(p))
		}
	}
	for _, name := range names {
		if err := d.drop(name); err != nil {
			return 0, err
		}
	}
	return len(names), nil
}

func (d *Dir) drop(name string) error {
	if err := d.fs.RemoveAll(filepath.Join(d.path, name)); err != nil {
		return fmt.Errorf("checkpoint: drop %s: %w", name, err)
	}
	return nil
}
