package graphstore

import (
	"math"
	"math/bits"
	"time"

	"gqlstream/ingest/event"
)

const (
	// edgeTTLDefault is how long an edge holds that a post asserts.
	edgeTTLDefault = 30 * 24 * time.Hour
	// postHalfLifeDefault is the half-life of posts: half of the counted posts were made in the
	// last twelve hours, as of the posts of one day. A plain prediction has none by default.
	postHalfLifeDefault = 12 * time.Hour
	// ageless is the epoch of evidence that does not age.
	ageless = math.MinInt64
)

// EveryAttribute stands for all attributes in EvidenceConfig.
const EveryAttribute = "*"

// EvidenceConfig configures how observations of a vertex age.
type EvidenceConfig struct {
	// A prediction or a post of the age HalfLife weighs half. With 0 that is postHalfLifeDefault
	// for a post and never for a plain prediction; below 0 it is never.
	HalfLife time.Duration `yaml:"half_life" json:",omitempty"`
	// EdgeTTL is the time to live of edges from posts; 0 means edgeTTLDefault, < 0 for ever.
	EdgeTTL time.Duration `yaml:"edge_ttl" json:",omitempty"`
	// Except is a rule over attributes; see package rule. Labels and predictions of vertices for
	// which it holds are not read: they are of another kind than the estimated ones.
	Except string `yaml:"except" json:",omitempty"`
	// Attributes names the attributes that estimates read; EveryAttribute names all. See
	// View.EvidenceAttributes.
	Attributes []string `yaml:"attributes" json:",omitempty"`
}

// ofPosts returns the half-life of posts, 0 for none.
func (c *EvidenceConfig) ofPosts() time.Duration {
	if c.HalfLife == 0 {
		return postHalfLifeDefault
	}
	return max(c.HalfLife, 0)
}

// Evidence describes the observations behind the prediction of a vertex. The zero Evidence belongs
// to a vertex without a prediction, or with one of a built-in classifier.
type Evidence = event.Evidence

// weightBits is the number of binary digits of the weight of one observation after its epoch: the
// weight is rounded by at most 2^-15 of itself.
const weightBits = 14

// weigh returns the weight of a plain prediction of a time, and its epoch. One without a time that
// came before log time began has no age.
func (c *EvidenceConfig) weigh(t event.Time) (weight uint32, epoch int64) {
	if c.HalfLife <= 0 || t == 0 {
		return 1 << weightBits, ageless
	}
	return c.weighPost(t)
}

// weighPost returns the weight of a post of a time, and its epoch.
func (c *EvidenceConfig) weighPost(t event.Time) (weight uint32, epoch int64) {
	half := c.ofPosts()
	if half == 0 {
		return 1 << weightBits, 0
	}
	epoch, growth := growth(t, half)
	return uint32(math.Round(growth * (1 << weightBits))), epoch
}

// mass returns how much the evidence is worth at a time, in fresh observations: the sum of
// 2^(-age/half-life) over its observations, at most one.
func (c *EvidenceConfig) mass(e Evidence, at event.Time) float64 {
	half := c.ofPosts()
	if half == 0 || e.Weight == 0 || e.Epoch == ageless {
		return 1
	}
	epoch, growth := growth(at, half)
	behind := min(max(epoch-e.Epoch, -64), 1<<12)
	return min(1, math.Ldexp(float64(e.Weight)/growth, -int(behind)-weightBits))
}

// growth returns 2^(t/halfLife) as a power of two and a factor in [1, 2). The factor is a product
// of constants chosen by the bits of the exponent, so it is the same on every processor.
func growth(t event.Time, halfLife time.Duration) (epoch int64, factor float64) {
	epoch = int64(t) / int64(halfLife)
	rest := int64(t) % int64(halfLife)
	if rest < 0 {
		epoch, rest = epoch-1, rest+int64(halfLife)
	}
	fraction, _ := bits.Div64(uint64(rest), 0, uint64(halfLife)) // in units of 2^-64
	factor = 1
	for i, root := range growthRoots {
		if fraction>>(63-i)&1 == 1 {
			factor = float64(factor * root)
		}
	}
	return epoch, factor
}

// growthRoots are 2^(1/2), 2^(1/4), ...: square roots are rounded the same on every processor.
var growthRoots = func() (roots [40]float64) {
	x := 2.0
	for i := range roots {
		x = math.Sqrt(x)
		roots[i] = x
	}
	return roots
}()

// ages reports whether evidence is worth less as time goes by, if there is a half-life.
func ages(e Evidence) bool { return e.Weight > 0 && e.Epoch != ageless }

// evidenceColumns hold the evidence of every vertex.
type evidenceColumns struct {
	weights column[uint32]
	epochs  column[int64]
	times   column[event.Time]
	changed column[event.Time]

	observations column[uint32]

	aging int // vertices with evidence that ages
}

// resize extends the columns to n vertices. New vertices have no evidence.
func (c *evidenceColumns) resize(n int) {
	c.weights.resize(n)
	c.epochs.resize(n)
	c.times.resize(n)
	c.changed.resize(n)
	c.observations.resize(n)
}

// at returns the evidence of v.
func (c *evidenceColumns) at(v Vertex) Evidence {
	return Evidence{
		Weight: c.weights.data[v], Epoch: c.epochs.data[v], Time: c.times.data[v],
		Changed: c.changed.data[v], Observations: c.observations.data[v],
	}
}

// set replaces the evidence of v.
func (c *evidenceColumns) set(v Vertex, e Evidence) {
	if ages(c.at(v)) {
		c.aging--
	}
	if ages(e) {
		c.aging++
	}
	c.weights.data[v], c.epochs.data[v] = e.Weight, e.Epoch
	c.times.data[v], c.changed.data[v] = e.Time, e.Changed
	c.observations.data[v] = e.Observations
}

// setClock makes log time the time of all that is later: the broker's clock had leapt ahead when it
// came. An observation of such a time weighs as one of log time does.
func (c *evidenceColumns) setClock(now event.Time, config *EvidenceConfig) {
	for v, at := range c.times.data {
		c.changed.data[v] = min(c.changed.data[v], now)
		if at <= now {
			continue
		}
		c.times.data[v] = now
		if c.weights.data[v] > 0 && c.epochs.data[v] != ageless {
			c.weights.data[v], c.epochs.data[v] = config.weighPost(now)
		}
	}
}

// clone returns a read-only copy.
func (c *evidenceColumns) clone() evidenceColumns {
	return evidenceColumns{
		c.weights.clone(), c.epochs.clone(), c.times.clone(), c.changed.clone(),
		c.observations.clone(), c.aging,
	}
}

// Evidence returns the evidence behind the prediction of v.
func (l *labelling) Evidence(v Vertex) Evidence { return l.evidence.at(v) }

// MassWhole is the mass of recent evidence, and of evidence that does not age, in the units of
// MassUnits.
const MassWhole = 1 << 8

// MassUnits returns how much a prediction with this evidence is worth at a log time, in units of
// 1/MassWhole of a fresh observation. It is at least one unit, so that a community whose members
// are all silent keeps its last predictions.
func (l *labelling) MassUnits(e Evidence, at event.Time) uint16 {
	if e.Epoch == ageless || e.Weight == 0 {
		return MassWhole
	}
	return max(1, uint16(float64(MassWhole*l.config.Evidence.mass(e, at))+0.5))
}

// AgeStep returns the log time after which masses are worth reading again: an eighth of the
// half-life, in which they lose a twelfth. It is 0 while no prediction ages.
func (l *labelling) AgeStep() event.Time {
	half := l.config.Evidence.ofPosts()
	if half == 0 || l.evidence.aging+l.models.evidence.aging == 0 {
		return 0
	}
	return max(1, event.Time(half/8))
}
