package graphstore

import (
	"iter"
	"maps"
	"slices"
)

// View reads the store in its present state. It stays valid, and its answers unchanged, until the
// next Apply, SetCommunities, Compact or Release. The slices it returns belong to the store and are
// read-only. Any number of goroutines may read one view at a time. Methods panic on a vertex or
// community that the store does not have.
type View struct {
	*parts
	s *Store
}

// Vertices returns the number of vertices. Every index below it is valid: an erased vertex keeps
// its index, isolated and unknown in every column, until the next new vertex takes it.
func (w View) Vertices() int { return w.s.ids.len() }

// Edges returns the number of undirected edges.
func (w View) Edges() int { return w.s.edges.edges }

// Degree returns the sum of the weights at v, without a self-loop. It is exact.
func (w View) Degree(v Vertex) float64 { return w.s.edges.runs[v].degree }

// WeightSum returns the sum of Degree over all vertices. It is exact.
func (w View) WeightSum() float64 { return w.s.edges.weightSum }

// Versions returns the names of the model versions, by index, in order of first
// mention. They are never forgotten.
func (w View) Versions() []string { return w.s.labelling.versions.names }

// Present returns the number of vertices without the erased ones.
func (w View) Present() int { return w.s.ids.len() - len(w.s.ids.free) }

// Communities returns the number of communities.
func (w View) Communities() int { return len(w.s.members.communities) }

// CommunityName returns the name of c.
func (w View) CommunityName(c Community) string { return w.s.members.communities[c].rule.Name }

// Rule returns the definition of c.
func (w View) Rule(c Community) Rule { return w.s.members.communities[c].rule }

// Hops returns the radius of the ego network c: fewer hops than its rule allows if more would
// exceed its MembersMax; 0 for other communities.
func (w View) Hops(c Community) int {
	if e := w.s.members.communities[c].ego; e != nil {
		return e.radius
	}
	return 0
}

// CutShort reports whether c is an ego network with fewer hops than its rule allows, because more
// would exceed its MembersMax.
func (w View) CutShort(c Community) bool {
	e := w.s.members.communities[c].ego
	return e != nil && len(e.distances) > 0 && e.radius < e.hops
}

// Mismatches counts the evaluations of the expression of c, since the store was made or loaded,
// that met types which do not go together.
func (w View) Mismatches(c Community) uint64 { return w.s.members.communities[c].mismatches }

// CommunityNames returns the names of the communities, sorted.
func (w View) CommunityNames() []string { return slices.Sorted(maps.Keys(w.s.members.byName)) }

// EvidenceAttributes returns the keys of the attributes that estimates may read, sorted: those that
// the configuration names. EveryAttribute is all but one named label, which in a file of vertices
// is the truth.
func (w View) EvidenceAttributes() []string {
	named := w.s.config.Evidence.Attributes
	if len(named) == 0 {
		return nil
	}
	all := slices.Contains(named, EveryAttribute)
	return slices.DeleteFunc(w.AttributeKeys(), func(key string) bool {
		return !(all && key != "label") && !slices.Contains(named, key)
	})
}

// EdgesOf visits the neighbours of v with the weights of the edges to them.
func (w View) EdgesOf(v Vertex) iter.Seq2[Vertex, float64] {
	return func(yield func(Vertex, float64) bool) {
		weights := w.Weights(v)
		for i, u := range w.Neighbors(v) {
			weight := 1.0
			if weights != nil {
				weight = weights[i]
			}
			if !yield(u, weight) {
				return
			}
		}
	}
}

// FindCommunity returns the community of that name.
func (w View) FindCommunity(name string) (Community, bool) {
	c, ok := w.s.members.byName[name]
	return c, ok
}

// Members returns the members of c, sorted, and their multiplicities.
func (w View) Members(c Community) ([]Vertex, []uint32) {
	community := &w.s.members.communities[c]
	return community.vertices, community.multiplicities
}

// MemberOf returns the communities of v by index, those by rule included.
func (w View) MemberOf(v Vertex) []Membership { return w.s.members.of[v] }

// ForMembers visits the members of a community by vertex, with their multiplicities.
func (w View) ForMembers(c Community, visit func(Vertex, uint32)) {
	vertices, multiplicities := w.Members(c)
	for i, v := range vertices {
		visit(v, multiplicities[i])
	}
}
