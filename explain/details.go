package explain

import (
	"cmp"
	"math"
	"slices"

	"gqlstream/graphstore"
	"gqlstream/ingest/event"
	"gqlstream/quant"
)

// details counts what the changes of a cause are.
func (w *Walk) details(c *cause, here, there *state) []quant.Detail {
	t := counts{}
	for _, g := range c.groups {
		f := &g[0]
		switch c.kind {
		case quant.CauseJoined:
			t.add(w.what(there, f.u))
		case quant.CauseLeft:
			t.add(w.what(here, f.u))
		case quant.CauseModel:
			t.add(name(here.version) + " → " + name(there.version))
			t.add(where(here, there, f.u))
		case quant.CausePredictions:
			t.add(where(here, there, f.u))
		case quant.CauseLabels:
			t.add(appeared(f.about[before].label != nothingKnown, f.about[after].label != nothingKnown))
			t.add(where(here, there, f.u))
		case quant.CauseEdges:
			t.add(appeared(f.weight[before] > 0, f.weight[after] > 0))
			t.add(between(there, f.u, f.v))
		}
	}
	return t
}

// counts are details in the order of first mention.
type counts []quant.Detail

func (t *counts) add(what string) {
	i := slices.IndexFunc(*t, func(d quant.Detail) bool { return d.What == what })
	if i < 0 {
		i = len(*t)
		*t = append(*t, quant.Detail{What: what})
	}
	(*t)[i].Count++
}

// what describes a member by its label, or by its predicted class.
func (w *Walk) what(s *state, id event.ID) string {
	switch v := s.of(id); {
	case v.label.Class != event.NoClass:
		return "labelled " + w.class(int(v.label.Class))
	case v.units == nil:
		return "without a prediction"
	default:
		return "predicted " + w.class(slices.Index(v.units, slices.Max(v.units)))
	}
}

func (w *Walk) class(k int) string {
	return event.ClassSet{Names: w.options.Classes}.Name(event.Class(k))
}

func name(version string) string { return cmp.Or(version, "(no name)") }

func appeared(was, is bool) string {
	switch {
	case !was:
		return "new"
	case !is:
		return "gone"
	}
	return "changed"
}

// where says what a vertex is to the community.
func where(here, there *state, id event.ID) string {
	switch {
	case here.of(id).multiplicity > 0 || there.of(id).multiplicity > 0:
		return "of members"
	case there.of(id).label.Class != event.NoClass:
		return "of labelled vertices elsewhere"
	}
	return "of others"
}

func between(there *state, u, v event.ID) string {
	a, b := there.of(u).multiplicity > 0, there.of(v).multiplicity > 0
	switch {
	case a && b:
		return "between members"
	case a || b:
		return "between members and others"
	}
	return "between others"
}

// candidates returns the changes of a cause that are looked at alone: all, or those
// of the largest size where there are too many.
func (w *Walk) candidates(c *cause, there *state, shares []float64) []group {
	if len(c.groups) <= w.named() {
		return c.groups
	}
	sizes := make(map[*fact]float64, len(c.groups)) // by the first of the group
	for _, g := range c.groups {
		sizes[&g[0]] = rough(&g[0], there, shares)
	}
	sorted := slices.Clone(c.groups)
	slices.SortStableFunc(sorted, func(a, b group) int { return cmp.Compare(sizes[&b[0]], sizes[&a[0]]) })
	return sorted[:w.named()]
}

// rough guesses how much a change may move the estimate, to choose candidates: by what it does to
// the plain mean of the predictions, and for edges by how much of the walks at members it turns.
func rough(f *fact, there *state, shares []float64) float64 {
	is := there.of(f.u)
	members := float64(is.multiplicity)
	switch f.kind {
	case event.KindMember:
		times := math.Abs(float64(f.about[after].multiplicity) - float64(f.about[before].multiplicity))
		off := 0.1
		for k, unit := range is.units {
			off += math.Abs(float64(unit)/event.One - shares[k])
		}
		return times * off
	case event.KindPrediction:
		off := 0.0
		for k := range shares {
			off += math.Abs(part(f.about[after].units, k) - part(f.about[before].units, k))
		}
		if is.label.Class != event.NoClass {
			members++
		}
		return off * (members + 0.1)
	case event.KindEdge:
		return math.Abs(f.weight[after]-f.weight[before]) * (there.turned(there.find(f.u)) + there.turned(there.find(f.v)))
	}
	return members + 1
}

func part(units []uint32, k int) float64 {
	if units == nil {
		return 0
	}
	return float64(units[k]) / event.One
}

// turned estimates how many members' walks one unit of edge weight at v diverts. A vertex that is no member counts a tenth.
func (s *state) turned(v graphstore.Vertex) float64 {
	if v == nobody {
		return 0
	}
	return (0.1 + float64(s.multiplicity[v])) / (1 + s.view.Degree(v))
}

// size is the sum of the absolute values.
func size(v []float64) (sum float64) {
	for _, x := range v {
		sum += math.Abs(x)
	}
	return sum
}
