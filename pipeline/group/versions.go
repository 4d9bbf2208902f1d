package group

import (
	"context"
	"slices"
	"strings"
)

// Versions lists the names of a configuration under which graphs are stored: one for each version
// of the tables.
func (s *Store) Versions(ctx context.Context, config string) (names []string, err error) {
	infos, _, err := s.list(ctx, config)
	for _, info := range infos {
		name, rest, _ := strings.Cut(info.Name, "/")
		family, _, _ := strings.Cut(name, ".")
		if !info.Deleted && family == config && strings.HasSuffix(rest, "/"+GraphPart) &&
			!slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, err
}
