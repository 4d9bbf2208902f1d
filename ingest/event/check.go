package event

import (
	"math"
	"unicode/utf8"
)

// ParseVertex returns the vertex id that s names, or a *Problem when s is empty,
// too long or not UTF-8. The id aliases s.
func (d *Decoder) ParseVertex(s string) (ID, error) {
	id, p := d.parseID(s)
	return id, asError(p)
}

func (d *Decoder) parseID(s string) (ID, *Problem) {
	if p := d.checkName("vertex id", s); p != nil {
		return ID{}, p
	}
	return ParseID(s), nil
}

// checkName refuses what cannot name a vertex, community, version or attribute.
func (d *Decoder) checkName(what, s string) *Problem {
	if len(s) == 0 {
		return problemf(BadID, "%s is empty", what)
	}
	if len(s) > d.config.IDBytesMax {
		return problemf(BadID, "%s %s is longer than %d bytes", what, quote(s), d.config.IDBytesMax)
	}
	if !utf8.ValidString(s) {
		return problemf(BadID, "%s %s is not UTF-8", what, quote(s))
	}
	return nil
}

// ParseClass returns the class that s names or indexes, or a *Problem.
func (d *Decoder) ParseClass(s string) (Class, error) {
	c, p := d.parseClass(s)
	return c, asError(p)
}

func (d *Decoder) parseClass(s string) (Class, *Problem) {
	if len(s) > IDBytesLimit {
		return 0, problemf(UnknownClass, "class %s", quote(s))
	}
	if c, ok := d.classes[s]; ok {
		return c, nil
	}
	var n number
	if end := scanNumber(s, &n); end > 0 && end == len(s) {
		if v, ok := n.uint(); ok {
			return d.indexClass(v)
		}
	}
	if len(d.config.Classes.Names) == 0 {
		return 0, problemf(UnknownClass, "class %s is not an index from 0 to %d", quote(s), d.k-1)
	}
	return 0, problemf(UnknownClass, "class %s: %s", quote(s), Nearest(s, d.config.Classes.Names))
}

// indexClass returns the class with an index.
func (d *Decoder) indexClass(v uint64) (Class, *Problem) {
	if v >= uint64(d.k) {
		return 0, problemf(UnknownClass, "class %d, there are classes 0 to %d", v, d.k-1)
	}
	return Class(v), nil
}

// CheckEdge makes e canonical (weight rounded to its grain; no weight and no
// time to live on a removal) or returns a *Problem. Its ids are sound already.
func (d *Decoder) CheckEdge(e *Edge) error { return asError(checkEdge(e)) }

func checkEdge(e *Edge) *Problem {
	if e.Src.Number == e.Dst.Number && e.Src.Name == e.Dst.Name {
		return problemf(SelfLoop, "edge from %s to itself", quote(e.Src.String()))
	}
	if e.Remove {
		e.Weight, e.TTL = 0, 0
		return nil
	}
	if units := e.Weight / WeightUnit; !(units >= 1 && units <= WeightMax/WeightUnit &&
		float64(int64(units)) == units) { // nearly every weight is one of these already
		if p := roundWeight(e); p != nil {
			return p
		}
	}
	if e.TTL != 0 {
		return checkTTL(e.TTL)
	}
	return nil
}

// roundWeight rounds the weight of an edge to its grain.
func roundWeight(e *Edge) *Problem {
	if math.IsNaN(e.Weight) || math.IsInf(e.Weight, 0) {
		return problemf(NotFinite, "weight is %v", e.Weight)
	}
	w := RoundWeight(e.Weight)
	if !(w > 0 && w <= WeightMax) {
		return problemf(BadWeight, "weight %v must be at least 2^-21 and at most 2^24", e.Weight)
	}
	e.Weight = w
	return nil
}

// NewPrediction returns the prediction of probabilities p for a vertex, with
// units owned by b, or a *Problem. It does not append it to b.
func (d *Decoder) NewPrediction(b *Batch, vertex ID, p []float64) (Prediction, error) {
	e, problem := d.newPrediction(b, vertex, p)
	return e, asError(problem)
}

func (d *Decoder) newPrediction(b *Batch, vertex ID, p []float64) (Prediction, *Problem) {
	if len(p) != d.k {
		return Prediction{}, d.wrongClasses(len(p))
	}
	units := b.Units(d.k)
	if problem := quantise(units, p); problem != nil {
		b.units = b.units[:len(b.units)-d.k]
		return Prediction{}, problem
	}
	return Prediction{Vertex: vertex, Units: units}, nil
}

// wrongClasses is the problem of n probabilities.
func (d *Decoder) wrongClasses(n int) *Problem {
	return problemf(WrongClasses, "%d probabilities for %d classes", n, d.k)
}

// certain returns units that put all probability on one class.
func (d *Decoder) certain(b *Batch, c Class) []uint32 {
	units := b.Units(d.k)
	units[c] = One
	return units
}
