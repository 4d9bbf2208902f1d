package ask

import (
	"cmp"
	"math"
	"slices"

	"gqlstream/graphstore"
	"gqlstream/ingest/event"
	"gqlstream/quant"
	"gqlstream/quant/stats"
)

const (
	terciles = 3
	// strataMembersMin is the number of members that a stratum of its own must have.
	strataMembersMin = 3
	// believed is the weight, in labels, of the predictions of a stratum relative to its
	// calibration labels.
	believed = 5
)

// stratum is a part of a group: one predicted class, one tercile of how sure that is.
type stratum struct {
	y  []float64 // K: mean of the labels that are expected
	yp []float64 // K: mean of y p
}

// example is a calibration label with its prediction.
type example struct {
	class int // the label
	p     []float64
}

// examples lists the calibration labels with a prediction, by predicted class.
func examples(view graphstore.View, classes int) [][]example {
	byClass := make([][]example, classes)
	for v := range graphstore.Vertex(view.Vertices()) {
		label, units := view.Label(v), view.Prediction(v)
		if label.Class == event.NoClass || label.Role != event.Calibrate || units == nil {
			continue
		}
		p := probabilities(units, classes)
		at := likeliest(p)
		byClass[at] = append(byClass[at], example{int(label.Class), p})
	}
	return byClass
}

// likeliest returns the class of the largest probability, the first on ties.
func likeliest(p []float64) int { return slices.Index(p, slices.Max(p)) }

// stratify divides the members of a group into strata and sets the wanted labels of each.
func (p *plan) stratify(g int) {
	group := &p.groups[g]
	byClass := make([][]*place, p.classes)
	for _, m := range group.members {
		class := likeliest(m.p)
		byClass[class] = append(byClass[class], m)
	}
	for class, members := range byClass {
		slices.SortStableFunc(
			members,
			func(a, b *place) int { return cmp.Compare(a.p[class], b.p[class]) },
		)
		parts := min(terciles, max(1, len(members)/strataMembersMin))
		for part := range parts {
			from, to := part*len(members)/parts, (part+1)*len(members)/parts
			if from < to {
				p.stratum(g, class, members[from:to])
			}
		}
	}
	if shares := p.question.Shares[group.name]; len(shares) == p.classes {
		p.tilt(g, shares)
	}
	p.wants(g)
}

// tiltSteps is the number of adaptations of the weights of the classes.
const tiltSteps = 30

// tilt weighs the labels of each stratum by class, so that the expected classes of all members have
// the presently estimated shares: where nine in ten members are of one class, other labels are
// rarer than elsewhere.
func (p *plan) tilt(g int, shares []float64) {
	group := &p.groups[g]
	sizes := make([]float64, len(group.strata))
	for _, m := range group.members {
		sizes[m.stratum] += m.times / group.total
	}
	floor := 0.5 / group.total
	for range tiltSteps {
		mean := make([]float64, p.classes)
		for h := range group.strata {
			for i, y := range group.strata[h].y {
				mean[i] += sizes[h] * y
			}
		}
		for h := range group.strata {
			for i := range p.classes {
				group.strata[h].weigh(i, max(shares[i], floor)/max(mean[i], floor))
			}
			group.strata[h].normalise()
		}
	}
}

// weigh multiplies the expectations of one class.
func (s *stratum) weigh(class int, weight float64) {
	s.y[class] *= weight
	s.yp[class] *= weight
}

// normalise scales the expected labels of a member to one, or to zero if no member has a prediction
// or label.
func (s *stratum) normalise() {
	all := 0.0
	for _, y := range s.y {
		all += y
	}
	for i := range s.y {
		s.weigh(i, 1/cmp.Or(all, 1))
	}
}

// stratum adds a stratum of the members given.
func (p *plan) stratum(g, class int, members []*place) {
	k := p.classes
	low, high := members[0].p[class], members[len(members)-1].p[class]
	s := stratum{y: make([]float64, k), yp: make([]float64, k)}
	labels := 0.0
	for _, e := range p.examples[class] {
		if e.p[class] >= low && e.p[class] <= high {
			labels++
			s.y[e.class]++
			s.yp[e.class] += e.p[e.class]
		}
	}
	weight := believed / float64(len(members))
	for _, m := range members {
		for i, x := range m.p {
			s.y[i] += weight * x
			s.yp[i] += weight * x * x
		}
		m.stratum = len(p.groups[g].strata)
	}
	s.normalise()
	p.groups[g].strata = append(p.groups[g].strata, s)
}

// wants sets the wanted labels of every member of a group, in proportion to its multiplicity times
// 1/2 + S_h/2S.
func (p *plan) wants(g int) {
	group := &p.groups[g]
	spread := make([]float64, len(group.strata))
	mean := 0.0
	sizes := make([]float64, len(spread))
	for _, m := range group.members {
		variance := 1.0
		for i, x := range m.p { // of y - p, were y as expected in the stratum
			variance += x*x - 2*x*group.strata[m.stratum].y[i]
		}
		spread[m.stratum] += max(variance, 0)
		sizes[m.stratum]++
	}
	for h := range spread {
		spread[h] = math.Sqrt(spread[h] / sizes[h])
		mean += spread[h] * sizes[h] / float64(len(group.members))
	}
	all := 0.0
	for _, m := range group.members {
		m.want = m.times
		if mean > 0 {
			m.want *= 0.5 + 0.5*spread[m.stratum]/mean
		}
		all += m.want
	}
	for _, m := range group.members {
		m.want /= all
	}
}

// widths returns the half-widths by class of the interval that the labels of a division
// give: quant's own for the sums that such a draw has on average.
func (p *plan) widths(g int, pi func(member int) float64) []float64 {
	group, k := &p.groups[g], p.classes
	a, mean := stats.NewAudit(k), make([]float64, k)
	labels := 0.0
	for i, m := range group.members {
		s, x := &group.strata[m.stratum], pi(i)
		labels += x
		a.Expect(s.y, m.p, s.yp, m.times, x, x)
		for i := range k {
			mean[i] += m.times / group.total * m.p[i]
		}
	}
	a.Labels = max(int(math.Round(labels)), stats.AuditsMin)
	var e quant.Estimate
	options := quant.Options{Method: quant.Audits, Confidence: p.question.Confidence}
	if err := p.solver.Estimate(&e, a.Of(group.total, mean), options); err != nil {
		panic(err) // the sums are of one shape
	}
	widths := make([]float64, k)
	for i := range widths {
		widths[i] = (e.High[i] - e.Low[i]) / 2
	}
	return widths
}
