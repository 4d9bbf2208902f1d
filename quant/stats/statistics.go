package stats

import "gqlstream/quant/solve"

// Cells are the statistics of one community under one kind of profile. A profile is
// a vertex as the estimator sees it: a distribution over Z cells. Matrices are
// row-major, Z rows (cells) by K columns (classes): entry (z, i) is at z*K+i.
type Cells struct {
	Z  int
	P  []float64 // Z: mean profile of the unlabelled members that have one
	N  []float64 // Z x K: sum of phi_z over calibration labels of class i
	A1 []float64 // Z x K: sum of a phi_z, a the kernel mass of the labelled vertex
	A2 []float64 // Z x K: sum of a^2 phi_z

	// With weights g of the labels themselves, N and A1 are the sums of g phi_z and g a phi_z,
	// A2 is that of g^2 a^2 phi_z, and these are the sums of g^2 phi_z and g^2 a phi_z. Nil,
	// both, where every g is one: they are N and A1 then.
	G2, G2A []float64 // Z x K
}

// Row is one calibration label as the exact variances need it.
type Row struct {
	Class     int
	A         float64   // kernel mass of the vertex for this community, unnormalised
	G         float64   // weight of the label itself; 0 is one
	Own       []float64 // K: the vertex's own prediction
	Neighbors []float64 // K: mean prediction of its voting neighbours, or Own without any
}

// Statistics is the whole input of a quantifier for one community. The tallies fill
// it; nothing here depends on the method, on lambda or on the scaling, which are
// chosen when an estimate is read.
type Statistics struct {
	K int

	Members   float64   // total multiplicity
	Labelled  float64   // multiplicity of members with a known label
	Anchored  []float64 // K: multiplicity of labelled members by class, counted exactly
	Profiled  float64   // multiplicity of unlabelled members that have a prediction
	Squares   float64   // sum of their squared multiplicities; 0 means that all are one
	KernelSum float64   // M: total multiplicity of the kernel's sources

	// MassMin >= 0 is a mean mass of labels that counts as none.
	MassMin float64

	ClassN  []float64 // K: calibration labels with a prediction, by class
	ClassA1 []float64 // K: sum of a over them
	ClassA2 []float64 // K: sum of a^2 over them

	// ClassG2 and ClassG2A are the sums of g^2 and g^2 a by class, as G2 and G2A are by cell.
	// ClassN is then the sum of g, scaled to sum to the effective number of labels,
	// (sum g)^2/(sum g^2).
	ClassG2, ClassG2A []float64 // K, or nil

	Soft     *Cells // K cells: the vertex's own prediction
	SoftPair *Cells // K^2 cells, j*K+k: own prediction j times mean of neighbours k
	Hard     *Cells // K cells: own class
	HardPair *Cells // K^2 cells: own class j, majority class of the neighbours k

	// OwnVariance, K or nil, holds the variances of the predictions over the
	// unlabelled members with one, weighted by multiplicity: Var_U(p).
	OwnVariance []float64

	// Rows, when not nil, lets the intervals use the exact weighted covariances; without
	// it the diagonal stand-in from A2 is used, which is wider. It visits every
	// calibration label in a fixed order; the slices passed are valid during the call only.
	Rows func(visit func(Row))

	// Audit holds the audit labels among the members; nil: there are none.
	Audit *Audit

	// Posterior is needed by auto where there is a calibration label. Methods that rest on the
	// shares of the labels' classes read it to learn whether these are typical of the graph.
	Posterior *Posterior
}

// Kind says which of the cells a method reads.
type Kind struct {
	Hard bool // hard predictions
	Pair bool // K^2 cells
}

// Cells returns the cells of a kind, or nil.
func (s *Statistics) Cells(of Kind) *Cells { return *s.cells(of) }

func (s *Statistics) cells(of Kind) **Cells {
	switch {
	case of.Hard && of.Pair:
		return &s.HardPair
	case of.Hard:
		return &s.Hard
	case of.Pair:
		return &s.SoftPair
	default:
		return &s.Soft
	}
}

// WithProfile returns the statistics as they would be with another mean profile of the members in
// the cells of a kind.
func (s *Statistics) WithProfile(of Kind, profile []float64) *Statistics {
	other, cells := *s, *s.Cells(of)
	cells.P = profile
	*other.cells(of) = &cells
	return &other
}

// Sample is the effective number of profiled members, (sum m)^2 / sum m^2 over
// their multiplicities m: a vertex counted ten times is one observation, not ten.
func (s *Statistics) Sample() float64 {
	if s.Squares > 0 {
		return s.Profiled * s.Profiled / s.Squares
	}
	return s.Profiled
}

// Open returns the share of the members that is estimated, not counted.
func (s *Statistics) Open() float64 {
	if s.Members > 0 {
		return min(max((s.Members-s.Labelled)/s.Members, 0), 1)
	}
	return 1
}

// LabelShares returns the shares of the classes among the calibration labels, equal ones if there
// are no labels.
func (s *Statistics) LabelShares() []float64 {
	shares := make([]float64, 0, s.K)
	n := solve.Sum(s.ClassN)
	for _, x := range s.ClassN {
		if n > 0 {
			shares = append(shares, x/n)
		} else {
			shares = append(shares, 1/float64(s.K))
		}
	}
	return shares
}
