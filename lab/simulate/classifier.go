package simulate

import (
	"math"
	"math/rand/v2"

	"gqlstream/ingest/event"
)

// simulatedVersion is the model version of simulated predictions.
const simulatedVersion = "simulated-1"

// classifier is a simulated classifier with the errors of a graph network. For a vertex of class y
// it draws a confidence c with the accuracy of y as mean, predicts y with probability c, else
// another class, and gives the predicted class the probability c: confidences are calibrated, up to
// the shift between communities. The accuracy is above average for a vertex that agrees with its
// contacts, and below average for a vertex that differs from them. Errors tend towards the classes
// of the contacts. For vertices the draw depends only on the seed, the vertex and its class, so the
// prediction of an unchanged vertex does not change. Every post has its own draw.
type classifier struct {
	config   Config
	accuracy []float64 // by class
	agree    []float64 // by class: sum over judgements of the share of contacts that agreed
	judged   []float64 // by class: judgements with contacts
	nearby   []float64 // scratch, K: shares of the contacts by class
	shares   []float64 // scratch, K
	worse    bool      // DegradeAt has come
	posts    uint64    // that were judged
	seed     uint64    // of the predictions of single vertices
	source   *rand.PCG // of draw, seeded again for every judgement
	draw     *rand.Rand
}

func newClassifier(config Config) classifier {
	source := new(rand.PCG)
	c := classifier{
		config: config, seed: config.Seed, source: source, draw: rand.New(source),
		accuracy: make([]float64, config.Classes),
		agree:    make([]float64, config.Classes), judged: make([]float64, config.Classes),
		nearby: make([]float64, config.Classes), shares: make([]float64, config.Classes),
	}
	for k := range c.accuracy {
		c.accuracy[k] = config.Accuracy[k%len(config.Accuracy)]
	}
	return c
}

// retrain gives the classifier another accuracy, the same for every class, and other errors.
func (c *classifier) retrain(accuracy float64) {
	c.seed += 1 << 16
	for k := range c.accuracy {
		c.accuracy[k] = accuracy
	}
}

// confidenceMin is the lowest confidence among K classes. The other classes get
// shares of the rest that differ by a factor of two at most, so above it the predicted class
// also has the highest probability.
func confidenceMin(classes int) float64 { return 2 / float64(classes+2) }

// judge writes the probabilities of v to units and returns them.
func (c *classifier) judge(n *network, v uint32, units []uint32) []uint32 {
	class := int(n.vertices[v].class)
	contacts := c.look(n, v)
	accuracy := c.accuracy[class]
	if contacts > 0 {
		c.agree[class] += c.nearby[class]
		c.judged[class]++
		accuracy += c.config.Neighborly * (c.nearby[class] - c.agree[class]/c.judged[class])
	}
	c.source.Seed(c.seed^0x636c617373^c.posts<<32, uint64(v)<<16|uint64(class))
	if c.config.Posts {
		c.posts++
	}
	lowest := confidenceMin(c.config.Classes)
	mean := min(max((accuracy-lowest)/(1-lowest), 0.02), 0.98)
	// u^((1-m)/m) has mean m for u uniform on (0, 1).
	confidence := lowest + (1-lowest)*math.Pow(c.draw.Float64(), (1-mean)/mean)
	said := class
	if c.draw.Float64() >= confidence || c.worse && c.draw.Float64() < c.config.DegradeShare {
		said = c.mistake(class)
	}
	c.spread(said, confidence, units)
	return units
}

// look fills nearby with the opinions of the contacts of v and returns their number.
func (c *classifier) look(n *network, v uint32) int {
	clear(c.nearby)
	p := &n.vertices[v]
	contacts := min(int(p.met), partnersKept)
	for _, u := range p.partners[:contacts] {
		c.nearby[n.vertices[u].class] += 1 / float64(contacts)
	}
	return contacts
}

// mistake draws a class other than the true one: half of the time the opinion of a contact, if
// that is another class, else any.
func (c *classifier) mistake(class int) int {
	if other := 1 - c.nearby[class]; c.draw.Uint32()&1 == 0 && other > 0.1 {
		r := c.draw.Float64() * other
		for k, share := range c.nearby {
			if k == class {
				continue
			}
			if r < share {
				return k
			}
			r -= share
		}
	}
	return (class + 1 + c.draw.IntN(len(c.nearby)-1)) % len(c.nearby)
}

// spread gives the class said its confidence, and the others the rest, up to twice as much to
// the contacts' classes; the rest of rounding goes to said.
func (c *classifier) spread(said int, confidence float64, units []uint32) {
	sum := 0.0
	for k := range c.shares {
		c.shares[k] = 1 + c.nearby[k]
		if k != said {
			sum += c.shares[k]
		}
	}
	units[said] = event.One
	for k := range units {
		if k != said {
			units[k] = uint32((1 - confidence) * event.One * c.shares[k] / sum)
			units[said] -= units[k]
		}
	}
}
