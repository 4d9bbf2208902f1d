package quant

// answer holds the estimate of a method for the unlabelled members, before the labelled
// ones are counted in. Vectors have K entries, matrices K x K.
type answer struct {
	k      int
	q      []float64 // the shares
	free   []float64 // the same without the bounds at zero: where intervals centre
	v      []float64 // covariance of free
	holds  []float64 // shares that intervals hold besides q; nil: none
	class  []float64 // (i, k): variance of share k from the labels of class i, were q_i one
	label  []float64 // (i, k): variance of share k from the labels of class i
	member []float64 // variance of share k from one member
	nEff   []float64
	lambda float64
	unseen float64 // share of the members' profiles that no label shows
	exact  bool    // variances from the profiles themselves, not from the stand-in

	logLikelihood float64   // of the members' profiles, where the method has one
	influence     []float64 // of auto: (column, k), errors of the coefficients times their effect on share k

	gamma     float64 // of auto: how far the community was selected by class
	posterior uint64  // of auto: version of the coefficients
	clustered bool    // of auto: the labels are in few places
	audited   bool    // audit labels decide, in part at least, so that every class is supported
}

// reset makes room for k classes and sets everything to zero.
func (a *answer) reset(k int) {
	*a = answer{
		k: k,
		q: zeroed(a.q, k), free: zeroed(a.free, k), v: zeroed(a.v, k*k),
		class: zeroed(a.class, k*k), label: zeroed(a.label, k*k),
		member: zeroed(a.member, k), nEff: zeroed(a.nEff, k), influence: a.influence[:0],
	}
}

// supported returns the number of classes that have labels of any weight.
func (a *answer) supported() (n int) {
	for _, x := range a.nEff {
		if x > 0 {
			n++
		}
	}
	return n
}

// blend adds x to a with the given weight. Variances of different answers from
// the same data are averaged, never summed.
func (a *answer) blend(weight float64, x *answer) {
	axpy(a.q, weight, x.q)
	axpy(a.free, weight, x.free)
	axpy(a.v, weight, x.v)
	axpy(a.class, weight, x.class)
	axpy(a.label, weight, x.label)
	axpy(a.member, weight, x.member)
	axpy(a.nEff, weight, x.nEff)
	a.lambda += weight * x.lambda
	a.unseen += weight * x.unseen
	a.exact = x.exact
}
