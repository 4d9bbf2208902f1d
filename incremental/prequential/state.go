package prequential

import "fmt"

// Row is one class of one version, as a checkpoint keeps it.
type Row struct {
	Version  uint32
	Last     uint64
	Drift    float64
	Degraded bool
	Class
}

// Rows returns the state for a restored monitor, by version and class.
func (m *Monitor) Rows() (rows []Row) {
	for _, v := range m.versions {
		for _, c := range v.Classes {
			rows = append(rows, Row{v.Version, v.Last, v.Drift, v.Degraded, c})
		}
	}
	return rows
}

// Restore returns the monitor whose rows these are.
func Restore(classes int, rows []Row) (*Monitor, error) {
	m := New(classes)
	if len(rows)%classes != 0 || len(rows) > versionsMax*classes {
		return nil, fmt.Errorf("prequential: %d rows of %d classes", len(rows), classes)
	}
	for ; len(rows) > 0; rows = rows[classes:] {
		v := Version{Version: rows[0].Version, Last: rows[0].Last, Drift: rows[0].Drift, Degraded: rows[0].Degraded}
		if n := len(m.versions); n > 0 && m.versions[n-1].Version >= v.Version {
			return nil, fmt.Errorf("prequential: version %d after %d", v.Version, m.versions[n-1].Version)
		}
		for _, row := range rows[:classes] {
			if row.Version != v.Version {
				return nil, fmt.Errorf("prequential: rows of version %d and %d are mixed", v.Version, row.Version)
			}
			v.Classes = append(v.Classes, row.Class)
		}
		m.versions = append(m.versions, v)
		m.judged = max(m.judged, v.Last)
	}
	return m, nil
}
