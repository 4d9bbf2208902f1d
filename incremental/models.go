package incremental

import "gqlstream/graphstore"

// noVersion is the index of no model version.
const noVersion = ^uint32(0)

// noticeAt is the share of the vertices that an incoming model version must cover
// before records speak of it: a few strays of an old one are no roll-out.
const noticeAt = 0.01

// coming returns the model version whose roll-out records speak of, or noVersion.
func coming(view graphstore.View) uint32 {
	r, ok := view.RollOut()
	if !ok || float64(r.VerticesCovered) < noticeAt*float64(r.Vertices) {
		return noVersion
	}
	return r.Version
}

// announce has every community published again when a roll-out has begun or ended
// in a step, before which the given version was coming. What it does to the
// predictions shows in the delta.
func (c *Core) announce(view graphstore.View, before uint32) {
	if c.warm && coming(view) != before {
		c.tallies.MoveAll()
	}
}

// modelVersion returns the model version of most members of a community, and whether
// there are others: a built-in classifier beside the version in use. A community
// without predictions has the version in use.
func (c *Core) modelVersion(id graphstore.Community, view graphstore.View) (version uint32, mixed bool) {
	active, known := view.ActiveVersion()
	if !known {
		active = 0
	}
	return c.tallies.ModelVersion(id, active)
}
