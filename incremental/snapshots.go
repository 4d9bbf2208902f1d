package incremental

import (
	"maps"
	"slices"
	"strings"

	"gqlstream/graphstore"
	"gqlstream/quant"
)

// Snapshots returns the last estimates of a community from saved sections of any shard, in the
// order of the configuration; none if none was published.
func Snapshots(sections map[string][]byte, id graphstore.Community) ([]quant.Snapshot, error) {
	var list []quant.Snapshot
	for _, name := range slices.Sorted(maps.Keys(sections)) {
		if !strings.HasSuffix(name, publishedSection) {
			continue
		}
		rows, err := readRows[publishedRow](sections, name)
		if err != nil {
			return nil, err
		}
		for _, row := range rows {
			if row.Community == uint32(id) {
				list = append(list, row.Snapshot)
			}
		}
	}
	return list, nil
}
