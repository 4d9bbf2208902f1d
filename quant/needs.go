package quant

// Needs says which cells, beyond the soft ones of the own prediction, the
// statistics must hold for the method.
func (m Method) Needs() (softPair, hard, hardPair bool) {
	r, ok := m.recipe()
	if !ok {
		return false, false, false
	}
	return r.pair && !r.hard, r.hard && !r.pair, r.hard && r.pair
}

// UsesKernel reports whether a kernel makes a difference to the method.
func (m Method) UsesKernel() bool {
	r, ok := m.recipe()
	return ok && r.weighted
}
