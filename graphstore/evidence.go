package graphstore

import (
	"fmt"
	"math"
	"math/bits"
	"time"

	"gqlstream/ingest/event"
)

// edgeTTLDefault is how long an edge holds that a post asserts.
const edgeTTLDefault = 30 * 24 * time.Hour

// EvidenceConfig says how long observations of a person stay evidence.
type EvidenceConfig struct {
	// HalfLife is the age at which a prediction or a post weighs half; 0: never.
	HalfLife time.Duration `yaml:"half_life" json:",omitempty"`
	// EdgeTTL is the time to live of edges that posts assert; 0 is edgeTTLDefault, < 0 for ever.
	EdgeTTL time.Duration `yaml:"edge_ttl" json:",omitempty"`
}

// validate reports every violation.
func (c *EvidenceConfig) validate() error {
	if c.HalfLife < 0 {
		return fmt.Errorf("evidence.half_life: %v is negative", c.HalfLife)
	}
	return nil
}

// Evidence says what a prediction that events asserted rests on: a plain prediction is one
// observation, and each post is one. The prediction is their mean, each weighted by
// 2^((t - 1970)/half-life) with t its own time. These weights do not change as time goes on,
// so nothing has to be computed anew: forward decay (Cormode, Shkapenyuk, Srivastava and Xu,
// ICDE 2009). No observation is kept.
//
// The zero Evidence is that of no prediction, and of one that a built-in classifier made.
type Evidence struct {
	Weight  uint32     // sum of the weights, in units of 2^(Epoch - weightBits)
	Epoch   int64      // half-lives from 1970 to the newest observation, or more; see mean
	Time    event.Time // own time of the newest observation
	Changed event.Time // log time of the last one
}

// weightBits are the binary digits of the weight of one observation after its epoch, which
// is rounded by at most 2^-15 of itself.
const weightBits = 14

// observe returns the weight of one observation at a time, and its epoch.
func (c *EvidenceConfig) observe(t event.Time) (weight uint32, epoch int64) {
	if c.HalfLife == 0 {
		return 1 << weightBits, 0
	}
	epoch, growth := growth(t, c.HalfLife)
	return uint32(math.Round(growth * (1 << weightBits))), epoch
}

// Mass returns how much of one fresh observation the evidence is worth at a time: the sum of
// 2^(-age/half-life) over its observations, at most one.
func (c *EvidenceConfig) mass(e Evidence, at event.Time) float64 {
	if c.HalfLife == 0 || e.Weight == 0 {
		return 1
	}
	epoch, growth := growth(at, c.HalfLife)
	behind := min(max(epoch-e.Epoch, -64), 1<<12)
	return min(1, math.Ldexp(float64(e.Weight)/growth, -int(behind)-weightBits))
}

// growth returns 2^(t/halfLife) as a power of two and a factor from 1 to below 2. The factor
// is a product of constants by the bits of the exponent: the same on every processor.
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

// growthRoots are 2^(1/2), 2^(1/4), ...: square roots are rounded alike everywhere.
var growthRoots = func() (roots [40]float64) {
	x := 2.0
	for i := range roots {
		x = math.Sqrt(x)
		roots[i] = x
	}
	return roots
}()

// evidenceColumns hold the evidence of every vertex.
type evidenceColumns struct {
	weights column[uint32]
	epochs  column[int64]
	times   column[event.Time]
	changed column[event.Time]
}

// resize makes room for n vertices. Those that are new have none.
func (c *evidenceColumns) resize(n int) {
	c.weights.resize(n)
	c.epochs.resize(n)
	c.times.resize(n)
	c.changed.resize(n)
}

// at returns the evidence of v.
func (c *evidenceColumns) at(v Vertex) Evidence {
	return Evidence{c.weights.data[v], c.epochs.data[v], c.times.data[v], c.changed.data[v]}
}

// set replaces the evidence of v.
func (c *evidenceColumns) set(v Vertex, e Evidence) {
	c.weights.data[v], c.epochs.data[v] = e.Weight, e.Epoch
	c.times.data[v], c.changed.data[v] = e.Time, e.Changed
}

// clone returns a copy, to be read.
func (c *evidenceColumns) clone() evidenceColumns {
	return evidenceColumns{c.weights.clone(), c.epochs.clone(), c.times.clone(), c.changed.clone()}
}

// Evidence returns what the prediction of v rests on.
func (l *labelling) Evidence(v Vertex) Evidence { return l.evidence.at(v) }

// Mass returns how much of one fresh observation the prediction of v is worth at a log time:
// 0 without a prediction, 1 with one that does not age.
func (l *labelling) Mass(v Vertex, at event.Time) float64 {
	if l.version.data[v] == noVersion {
		return 0
	}
	return l.config.Evidence.mass(l.evidence.at(v), at)
}
