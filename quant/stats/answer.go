package stats

// Answer is the result of a method for the unlabelled members of a community, before the labelled
// ones are counted in. Vectors have K entries, matrices K x K.
type Answer struct {
	K      int
	Share  []float64 // prevalence among the unlabelled
	NEff   []float64 // effective labels of each class
	Member []float64 // variance of each share from one member
	Free   []float64 // the shares without the bounds at zero: where intervals centre
	V      []float64 // K: variances of Free
	// (i, k) at i*K+k: variance of share k from the labels of class i, were its share one
	Spreads []float64
	Parts   []float64 // (i, k) at i*K+k: variance of share k from the labels of class i
	Holds   []float64 // shares that intervals hold in addition to Share; nil: none
	Lambda  float64
	Exact   bool // variances from the profiles themselves, not from the stand-in
	Nothing bool // of cc and pcc: the predictions tell nothing of the classes
	Counts  bool // of cc and pcc: they need no labels, so every class is supported

	// of auto: (column, k), errors of the coefficients times their effect on share k
	Influence []float64
	Memory    *Memory // of auto: input of its next estimates; nil for other methods

	Audited     bool    // audit labels decide, in part at least, so that every class is supported
	AuditWeight float64 // of the estimate from them alone
	// K: difference of auto from that estimate, in its standard errors; nil: not compared
	AuditErrors []float64
	AuditPoints float64 // the difference of the class where that is largest, in points

	// Diagnose returns the doubts about the answer; nil: there are none.
	Diagnose func() Diagnosis
}

// Diagnosis holds the doubts of a method about its answer.
type Diagnosis struct {
	Unseen    bool  // too many members have profiles that no label shows
	Confused  []int // two classes that the labels hardly tell apart; nil: none
	Clustered bool  // the labels are in few places
	Disputed  []int // classes with different shares under two assumptions
	Atypical  bool  // the labels are not typical of the graph
}

// newShares returns an answer of zeros without variances.
func newShares(k int) *Answer {
	x := make([]float64, 3*k)
	return &Answer{K: k, Free: x[2*k:], Share: x[:k:k], NEff: x[k : 2*k : 2*k]}
}

// NewAnswer returns an answer of zeros.
func NewAnswer(k int) *Answer { return newShares(k).WithVariances() }

// WithVariances sets all variances of an answer to zero, and returns it.
func (a *Answer) WithVariances() *Answer {
	k, x := a.K, make([]float64, 2*a.K*(1+a.K))
	a.Member, a.V = x[:k:k], x[k:2*k:2*k]
	a.Spreads, a.Parts = x[2*k:2*k+k*k:2*k+k*k], x[2*k+k*k:]
	return a
}

// Fallback returns the answer where a method cannot answer: the shares of the calibration labels,
// with their effective number in each class.
func Fallback(s *Statistics) *Answer {
	a := newShares(s.K)
	copy(a.Share, s.LabelShares())
	copy(a.NEff, s.ClassN)
	for i, x := range s.ClassG2 {
		if x > 0 {
			a.NEff[i] *= s.ClassN[i] / x
		}
	}
	return a
}

// Supported returns the number of classes that have labels of any weight.
func (a *Answer) Supported() (n int) {
	for _, x := range a.NEff {
		if x > 0 {
			n++
		}
	}
	return n
}

const (
	// WorstDeviation is the largest standard deviation that a share can have: published where
	// nothing is known.
	WorstDeviation = 0.5
	// ShiftConfidence is the least confidence, over all classes together, for a flag that two
	// assumptions disagree.
	ShiftConfidence = 0.99
	// AuditConfidence is the same of auto and the audit labels.
	AuditConfidence = 0.98
	// AtypicalAbove is the distance of the labels from typical of the graph, in standard errors of
	// their mean posterior, above which they are flagged and corrected.
	AtypicalAbove = 3.0
	// ConfidenceDefault is the confidence of intervals where none is asked for.
	ConfidenceDefault = 0.9
)
