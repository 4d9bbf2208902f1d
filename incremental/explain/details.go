package explain

import (
	"cmp"
	"slices"

	"gqlstream/ingest/event"
	"gqlstream/quant"
)

// details counts the changes of a cause by kind.
func (w *Walk) details(c *cause, here, there *state) []quant.Detail {
	t := counts{}
	for _, g := range c.groups {
		f := &g[0]
		switch c.kind {
		case quant.CauseJoined:
			t.add(w.what(there, f.u))
			if here.find(f.u) == nobody {
				t.add("not in the graph before")
			}
		case quant.CauseLeft:
			t.add(w.what(here, f.u))
		case quant.CauseModel:
			t.add(name(here.version) + " → " + name(there.version))
			t.add(where(here, there, f.u))
		case quant.CausePredictions:
			t.add(where(here, there, f.u))
		case quant.CauseLabels:
			was, is := f.about[before].label, f.about[after].label
			t.add(appeared(was != nothingKnown, is != nothingKnown))
			t.add(where(here, there, f.u))
		case quant.CauseAttributes:
			for _, a := range f.values {
				t.add(a.key)
			}
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

// what describes a member by its label, or else by its predicted class.
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

// where describes the relation of a vertex to the community.
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
