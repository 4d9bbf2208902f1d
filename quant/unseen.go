package quant

const (
	// unseenFactor is how many times as large as in any class a cell of the members may
	// be before the rest of it counts as unseen. In a mixture of the classes it is no
	// larger than in one of them, but for noise.
	unseenFactor = 100
	// unseenSpread is the variance of shares of which nothing is known around those of
	// the labels, as a share of pi (1 - pi): that of a Dirichlet distribution with one
	// observation.
	unseenSpread = 1. / 2
	// unseenHigh is the share of unseen profiles that is flagged: as of members without
	// a prediction.
	unseenHigh = 1 - coverageLow
)

// unseen returns the share of the members' profiles that is in cells in which
// calibration labels of no class are, or hardly are.
func (m *confusion) unseen(p []float64) (share float64) {
	for z, x := range p {
		most := 0.0
		for a := range m.k {
			most = max(most, m.c[a*m.z+z])
		}
		share += max(0, x-unseenFactor*most)
	}
	return share
}

// addUnseen adds what the profiles that the labels do not show leave open to the
// covariance of ans: they say nothing of the classes, so what the answer takes for the
// shares there is that of the other members, and could be any other. Without this a
// likelihood to which every member is equally unlikely in all classes would be sure of
// whatever it began with.
func (w *Solver) addUnseen(ans *answer, m *confusion, p []float64) {
	ans.unseen = m.unseen(p)
	if ans.unseen == 0 {
		return
	}
	var total float64
	for _, i := range m.class {
		total += w.shares[i]
	}
	scale := unseenSpread * ans.unseen * ans.unseen
	for _, i := range m.class {
		for _, j := range m.class {
			ans.v[i*ans.k+j] += scale * w.shares[i] / total * (delta(i, j) - w.shares[j]/total)
		}
	}
}
