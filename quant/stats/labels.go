package stats

import (
	"gonum.org/v1/gonum/floats"

	"gqlstream/quant/solve"
)

// LabelSample is some calibration labels of each class, with sums over all.
type LabelSample struct {
	Mass, Squares []float64 // K: sums over all labels of their weights g and of g²
	Class         []int
	Weight        []float64
	Pi            []float64 // n x K
	Score         []float64 // n x (shared + K): derivative of log pi_y by the coefficients
	// by class, K x (shared + K): sum of g times the derivative of pi over all labels, from those
	// drawn
	slopes [][]float64
}

// NewLabelSample returns the sample of no label of K classes.
func NewLabelSample(k int) *LabelSample {
	return &LabelSample{
		Mass:    make([]float64, k),
		Squares: make([]float64, k),
		slopes:  make([][]float64, k),
	}
}

// Count counts a label that may or may not be drawn.
func (l *LabelSample) Count(class int, g float64) {
	l.Mass[class], l.Squares[class] = l.Mass[class]+g, l.Squares[class]+g*g
}

// Draw adds a counted label of positive weight g to the sample. labels is the number of labels that
// it stands for.
func (l *LabelSample) Draw(class int, g, labels float64, pi, views []float64) {
	if l.slopes[class] == nil {
		l.slopes[class] = make([]float64, len(views)+len(pi)*len(pi))
	}
	addSlope(l.slopes[class], labels*g, pi, views)
	l.Class, l.Weight, l.Pi = append(l.Class, class), append(l.Weight, g), append(l.Pi, pi...)
	for k := len(pi); len(views) > 0; views = views[k:] {
		l.Score = append(l.Score, views[class]-floats.Dot(pi, views[:k]))
	}
	for i, x := range pi {
		l.Score = append(l.Score, solve.Delta(i, class)-x)
	}
}

// addSlope adds weight times the derivative of the distribution p by the coefficients
// to dst, K x (Shared + K): for p_i proportional to exp(sum_j theta_j x_ji + b_i),
//
//	dp_i/dtheta_j = p_i (x_ji - sum_k p_k x_jk),   dp_i/db_l = p_i ([i = l] - p_l).
func addSlope(dst []float64, weight float64, p, views []float64) {
	k := len(p)
	shared := len(views) / k
	size := shared + k
	for j := range shared {
		x := views[j*k : (j+1)*k]
		mean := floats.Dot(p, x)
		for i, q := range p {
			dst[i*size+j] += weight * q * (x[i] - mean)
		}
	}
	for i, q := range p {
		row := dst[i*size+shared : (i+1)*size]
		solve.Axpy(row, -weight*q, p)
		row[i] += weight * q
	}
}
