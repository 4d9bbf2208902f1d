package quant

// Needs reports the cells, beyond the soft ones of the own prediction, that the
// statistics must hold for the method.
func (m Method) Needs() (softPair, hard, hardPair bool) {
	r, ok := m.recipe()
	if !ok {
		return false, false, false
	}
	return r.pair && !r.hard, r.hard && !r.pair, r.hard && r.pair
}

// WeighsCells reports whether the method reads the sums of cells weighted by the kernel, A1 and A2.
// The others read them of whole classes at most, as auto does, whatever kernel there is.
func (m Method) WeighsCells() bool {
	r, ok := m.recipe()
	return ok && r.weighted && r.family != familyAuto
}

// UsesKernel reports whether a kernel makes a difference to the method.
func (m Method) UsesKernel() bool {
	r, ok := m.recipe()
	return ok && r.weighted
}
