package prequential

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"gqlstream/ingest/event"
)

const (
	// versionsMax bounds the model versions that are kept.
	versionsMax = 8
	// fadeLabels is the number of judgements of a class that its means look back on.
	fadeLabels = 200
	// referenceLabels are the first judgements of a class, which the later ones are held against.
	referenceLabels = 100
	// oddsRatio is the factor on the odds of an error that is looked for.
	oddsRatio = 2
	// scoreFloor bounds the log score of a class that had no probability.
	scoreFloor = 1.0 / (1 << 30)
)

// Threshold is the CUSUM from which a version counts as degraded: log 1,000.
var Threshold = math.Log(1_000)

// Class holds the accuracy of a version on the labels of one true class.
type Class struct {
	Judged   uint64  // labels
	Accuracy float64 // faded share of hits: the largest probability was the label's
	Brier    float64 // faded mean of the squared error, 0 to 2
	LogScore float64 // faded mean of -log of the label's probability

	ReferenceHits uint64 // among the first referenceLabels
}

// Version holds the accuracy of one model version.
type Version struct {
	Version  uint32 // index in graphstore.View.Versions
	Last     uint64 // number of its last judgement, of all versions together
	Drift    float64
	Degraded bool
	Classes  []Class // K
}

// Monitor judges predictions. One goroutine owns it.
type Monitor struct {
	classes  int
	judged   uint64
	versions []Version // by Version
}

// New returns a monitor of K classes that has judged nothing.
func New(classes int) *Monitor { return &Monitor{classes: classes} }

// Versions returns the versions that are kept, by index: the monitor's own, read-only,
// until the next Judge.
func (m *Monitor) Versions() []Version { return m.versions }

// Degraded reports whether a version is known to have become worse.
func (m *Monitor) Degraded(version uint32) bool {
	i, known := m.find(version)
	return known && m.versions[i].Degraded
}

func (m *Monitor) find(version uint32) (int, bool) {
	return slices.BinarySearchFunc(m.versions, version, func(v Version, version uint32) int {
		return cmp.Compare(v.Version, version)
	})
}

// Judge compares a prediction of a version, K units, with the label that came after
// it, and reports whether Degraded has changed.
func (m *Monitor) Judge(version uint32, units []uint32, label event.Class) bool {
	if len(units) != m.classes || int(label) >= m.classes {
		panic(fmt.Sprintf("prequential: %d units and label %d of %d "+
			"classes", len(units), label, m.classes))
	}
	m.judged++
	v := m.version(version)
	v.Last = m.judged
	hit := slices.Index(units, slices.Max(units)) == int(label) // the lowest class on ties
	c := &v.Classes[label]
	c.Judged++
	c.fade(hit, units, label)
	if c.Judged <= referenceLabels {
		if hit {
			c.ReferenceHits++
		}
		return false
	}
	before := v.Degraded
	v.move(c.step(hit))
	return v.Degraded != before
}

// version returns the entry of a version, and begins one if need be, in the place of the
// version that was judged longest ago if there are too many.
func (m *Monitor) version(version uint32) *Version {
	i, known := m.find(version)
	if known {
		return &m.versions[i]
	}
	if len(m.versions) == versionsMax {
		oldest := 0
		for j := range m.versions {
			if m.versions[j].Last < m.versions[oldest].Last {
				oldest = j
			}
		}
		m.versions = slices.Delete(m.versions, oldest, oldest+1)
		i, _ = m.find(version)
	}
	m.versions = slices.Insert(
		m.versions,
		i,
		Version{Version: version, Classes: make([]Class, m.classes)},
	)
	return &m.versions[i]
}

// fade moves the means of a class.
func (c *Class) fade(hit bool, units []uint32, label event.Class) {
	rate := 1 / float64(min(c.Judged, fadeLabels))
	right := 0.0
	if hit {
		right = 1
	}
	brier := 0.0
	for j, unit := range units {
		p := float64(unit) / event.One
		if j == int(label) {
			p--
		}
		brier += float64(p * p)
	}
	score := -math.Log(max(float64(units[label])/event.One, scoreFloor))
	c.Accuracy += float64(rate * (right - c.Accuracy))
	c.Brier += float64(rate * (brier - c.Brier))
	c.LogScore += float64(rate * (score - c.LogScore))
}

// Reference returns the accuracy on the first labels of the class, and whether there
// have been enough.
func (c *Class) Reference() (float64, bool) {
	return float64(c.ReferenceHits) / referenceLabels, c.Judged >= referenceLabels
}

// step returns the increment of the CUSUM by a judgement.
func (c *Class) step(hit bool) float64 {
	e := (float64(referenceLabels-c.ReferenceHits) + 1) / (referenceLabels + 2) // Laplace
	e = min(e+math.Sqrt(e*(1-e)/referenceLabels), 0.99)
	x := -math.Log(1 - e + float64(oddsRatio*e))
	if !hit {
		x += math.Log(oddsRatio)
	}
	return x
}

// move adds a step to the CUSUM, which stays between 0 and the threshold.
func (v *Version) move(step float64) {
	v.Drift = min(max(v.Drift+step, 0), Threshold)
	switch v.Drift {
	case Threshold:
		v.Degraded = true
	case 0:
		v.Degraded = false
	}
}

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
		return nil, fmt.Errorf("accuracy: %d rows of %d classes", len(rows), classes)
	}
	for ; len(rows) > 0; rows = rows[classes:] {
		v := Version{
			Version:  rows[0].Version,
			Last:     rows[0].Last,
			Drift:    rows[0].Drift,
			Degraded: rows[0].Degraded,
		}
		if n := len(m.versions); n > 0 && m.versions[n-1].Version >= v.Version {
			return nil, fmt.Errorf("accuracy: version %d after "+
				"%d", v.Version, m.versions[n-1].Version)
		}
		for _, row := range rows[:classes] {
			if row.Version != v.Version {
				return nil, fmt.Errorf("accuracy: rows of version %d and %d are "+
					"mixed", v.Version, row.Version)
			}
			v.Classes = append(v.Classes, row.Class)
		}
		m.versions = append(m.versions, v)
		m.judged = max(m.judged, v.Last)
	}
	return m, nil
}
