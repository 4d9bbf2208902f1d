package simulate

import (
	"math"
	"math/rand/v2"
	"time"

	"gqlstream/ingest/event"
)

// Everyone names the whole network in Truth.
const Everyone = "everyone"

// opinionEvery is the number of ticks of one round over the opinions of all communities.
const opinionEvery = 10

// baseMin is the share below which a jump leaves no class.
const baseMin = 0.05

// opinions decide which share of a community holds which opinion. The target of a
// class moves smoothly around a base, which jumps; single vertices change their
// minds so that the community follows its target to the nearest vertex.
type opinions struct {
	config Config
	base   [][]float64  // by community: the mean of the drift, K
	phase  [][]float64  // by community and class, in turns
	period []float64    // of the drift in seconds, by community
	owed   []float64    // swaps that are due, by community
	jumped []event.Time // the latest jump of each community, 0 before any
	target []float64    // scratch, K
	rng    *rand.Rand   // chooses the jumps, apart from the rest
	last   int64        // the latest multiple of JumpEvery that has been served
}

func newOpinions(config Config, rng *rand.Rand) opinions {
	o := opinions{
		config: config,
		owed:   make([]float64, config.Communities), jumped: make([]event.Time, config.Communities),
		target: make([]float64, config.Classes),
		rng:    rand.New(rand.NewPCG(config.Seed, 0x6a756d70)),
	}
	for range config.Communities {
		base := make([]float64, config.Classes)
		phase := make([]float64, config.Classes)
		for k := range base {
			base[k] = 0.15 + rng.ExpFloat64()
			phase[k] = rng.Float64()
		}
		o.base = append(o.base, normalise(base))
		o.phase = append(o.phase, phase)
		o.period = append(o.period, config.DriftPeriod.Seconds()*(0.7+0.7*rng.Float64()))
	}
	return o
}

func normalise(x []float64) []float64 {
	sum := 0.0
	for _, v := range x {
		sum += v
	}
	for k := range x {
		x[k] /= sum
	}
	return x
}

// at returns the shares that community g aims at, valid until the next call.
func (o *opinions) at(g uint32, elapsed time.Duration) []float64 {
	turns := elapsed.Seconds() / o.period[g]
	for k := range o.target {
		swing := o.config.Drift * math.Sin(2*math.Pi*(turns+o.phase[g][k]))
		o.target[k] = o.base[g][k] * math.Exp(swing)
	}
	return normalise(o.target)
}

// draw returns the opinion of a new member of community g.
func (o *opinions) draw(g uint32, elapsed time.Duration, rng *rand.Rand) uint16 {
	r := rng.Float64()
	for k, share := range o.at(g, elapsed) {
		if r < share {
			return uint16(k)
		}
		r -= share
	}
	return uint16(len(o.target) - 1)
}

// moveOpinions applies the jumps of this tick, and moves the communities of this turn towards
// their targets.
func (s *Network) moveOpinions() {
	o, elapsed := &s.opinion, s.elapsed()
	if every := o.config.JumpEvery; every > 0 && int64(elapsed/every) > o.last {
		o.last = int64(elapsed / every)
		for range (len(o.base) + 3) / 4 {
			g := uint32(o.rng.IntN(len(o.base)))
			o.displace(g, o.config.JumpSize)
			o.jumped[g] = s.now
			s.settle(g)
		}
	}
	for g := uint32(s.tick % opinionEvery); int(g) < len(o.base); g += opinionEvery {
		s.settle(g)
		s.swap(g)
	}
}

// displace moves a share of community g from its largest class to another.
func (o *opinions) displace(g uint32, share float64) {
	base := o.base[g]
	from := 0
	for k := range base {
		if base[k] > base[from] {
			from = k
		}
	}
	to := (from + 1 + o.rng.IntN(len(base)-1)) % len(base)
	share = max(0, min(share, base[from]-baseMin))
	base[from] -= share
	base[to] += share
}

// settle changes minds in community g until every class has its share, to the
// vertex: one of the class with the largest surplus turns to the one with the
// largest deficit. It costs the classes and the changes, not the community.
func (s *Network) settle(g uint32) {
	n, target := &s.network, s.opinion.at(g, s.elapsed())
	counts := n.count[int(g)*n.classes : (int(g)+1)*n.classes]
	total := sum(counts)
	for range total {
		from, to := 0, 0
		surplus := func(k int) float64 { return float64(counts[k]) - target[k]*float64(total) }
		for k := range counts {
			if surplus(k) > surplus(from) {
				from = k
			}
			if surplus(k) < surplus(to) {
				to = k
			}
		}
		if surplus(from) < 1 || surplus(to) > -0.5 || counts[from] == 0 {
			return
		}
		s.changeMind(n.anyone(n.cell(g, uint16(from)), s.rng), uint16(to))
	}
}

// swap lets pairs of members exchange their opinions at the rate of Churn, which
// leaves the prevalence as it is and makes labels and predictions old.
func (s *Network) swap(g uint32) {
	n, o := &s.network, &s.opinion
	counts := n.count[int(g)*n.classes : (int(g)+1)*n.classes]
	total := sum(counts)
	hours := (opinionEvery * s.config.StepEvery).Hours()
	o.owed[g] += s.config.Churn * float64(total) * hours / 2
	for ; o.owed[g] >= 1 && total > 0; o.owed[g]-- {
		a := n.classByActivity(g, s.rng)
		b := (a + 1 + uint16(s.rng.IntN(n.classes-1))) % uint16(n.classes)
		if counts[b] == 0 {
			continue
		}
		u := n.anyone(n.cell(g, a), s.rng)
		v := n.anyone(n.cell(g, b), s.rng)
		s.changeMind(u, b)
		s.changeMind(v, a)
	}
}

// changeMind gives v another opinion. Its label stays as it was when it was asked, unless
// LabelRenew renews it in this tick; the classifier sees the change when v posts.
func (s *Network) changeMind(v uint32, class uint16) {
	s.network.take(v)
	p := &s.network.vertices[v]
	p.class = class
	s.network.put(v)
	if p.labelled && s.rng.Float64() < s.config.LabelRenew {
		s.queue.add(v, dueLabel, 0)
	}
}

// TruthRecord is the true state of one community at one time.
type TruthRecord struct {
	Time       event.Time
	Community  string
	Members    int
	Prevalence []float64  // K; all zero without members
	Jumped     event.Time // its latest jump; zero before any
}

// AppendTruth appends the truth of every community and of Everyone, as it is at the end of the
// latest finished tick, and returns the extended slice. It costs communities times classes.
func (s *Network) AppendTruth(dst []TruthRecord) []TruthRecord {
	n := &s.network
	all := TruthRecord{Time: s.now, Community: Everyone}
	counts := make([]int, n.classes)
	for g, name := range n.names {
		own := n.count[g*n.classes : (g+1)*n.classes]
		record := TruthRecord{Time: s.now, Community: name, Jumped: s.opinion.jumped[g]}
		record.Prevalence, record.Members = shares(own)
		dst = append(dst, record)
		for k, c := range own {
			counts[k] += c
		}
	}
	all.Prevalence, all.Members = shares(counts)
	return append(dst, all)
}

// VisitClasses visits every vertex with the class that it has at the end of the latest
// finished tick.
func (s *Network) VisitClasses(visit func(event.ID, event.Class)) {
	for v := range s.network.vertices {
		visit(event.NumberID(uint64(v)), event.Class(s.network.vertices[v].class))
	}
}

func shares(counts []int) (prevalence []float64, total int) {
	total = sum(counts)
	prevalence = make([]float64, len(counts))
	for k, c := range counts {
		prevalence[k] = float64(c) / float64(max(total, 1))
	}
	return prevalence, total
}

func sum(counts []int) (total int) {
	for _, c := range counts {
		total += c
	}
	return total
}
