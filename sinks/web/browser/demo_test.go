//go:build browser

package browser

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"gqlstream/quant"
	"gqlstream/sinks/web"
)

// demo makes plausible, moving estimates: shares that wander, intervals that fit
// their errors, plain counts with the bias of a classifier, flags and a model
// switch. Its clock is the log's.
type demo struct {
	classes  []string
	names    []string
	random   *rand.Rand
	level    [][]float64 // logits by community and class
	members  []float64
	n        []float64 // effective labels
	position uint64
	at       time.Time
	step     time.Duration
	events   map[string]uint64
	refused  map[string]uint64
	steps    uint64
	switchAt int // the round of a new model version
	round    int
}

var topics = []string{
	"cycling", "gardening", "chess", "photography", "sailing", "cooking", "astronomy", "running",
	"baking",
	"birdwatching", "climbing", "jazz", "theatre", "board games", "woodworking", "hiking", "poetry",
	"film",
	"football", "pottery",
}

var places = []string{
	"Berlin",
	"Lyon",
	"Porto",
	"Kraków",
	"Turin",
	"Ghent",
	"Malmö",
	"Graz",
	"Brno",
	"Cork",
}

func newDemo(communities int, classes []string, step time.Duration) *demo {
	d := &demo{
		classes: classes, random: rand.New(rand.NewPCG(7, 11)), step: step,
		position: 1_204_000, events: map[string]uint64{},
		refused:  map[string]uint64{"bad-weight": 3, "not-normal": 41},
		switchAt: 1 << 30,
	}
	for i := range communities {
		name := fmt.Sprintf("%s %s", places[i%len(places)], topics[i/len(places)%len(topics)])
		if i >= len(places)*len(topics) {
			name = fmt.Sprintf("%s %d", name, i/(len(places)*len(topics))+1)
		}
		d.names = append(d.names, name)
		logits := make([]float64, len(classes))
		for k := range logits {
			logits[k] = 1.1 * d.random.NormFloat64()
		}
		d.level = append(d.level, logits)
		d.members = append(d.members, math.Round(math.Exp(3+4.5*d.random.Float64())))
		d.n = append(d.n, math.Exp(2.5+3.2*d.random.Float64()))
	}
	return d
}

// next returns the estimates of the next emission for the communities in
// [from, to).
func (d *demo) next(from, to int) []quant.Estimate {
	d.round++
	d.at = d.at.Add(d.step)
	d.position += uint64(200 + d.random.IntN(400))
	var out []quant.Estimate
	for i := from; i < to; i++ {
		for k := range d.level[i] {
			d.level[i][k] += 0.018*d.random.NormFloat64() + 0.02*math.Sin(
				float64(d.round)/40+float64(i+3*k),
			)
			d.level[i][k] *= 0.998
		}
		if d.random.IntN(20) == 0 {
			d.members[i] = max(12, d.members[i]+math.Round(4*d.random.NormFloat64()))
		}
		if i%67 == 66 {
			out = append(out, quant.Estimate{
				Community: d.names[i], Position: d.position, Time: d.now(), Method: "auto",
				Flags: []string{quant.FlagBelowFloor}, Suppressed: true,
			})
			continue
		}
		shares := softmax(d.level[i])
		out = append(out, d.estimate(i, "auto", shares), d.estimate(i, "pcc", d.blurred(shares)))
	}
	d.count()
	return out
}

func (d *demo) now() string { return d.at.UTC().Format(time.RFC3339Nano) }

func (d *demo) estimate(i int, method string, shares []float64) quant.Estimate {
	k := len(shares)
	e := quant.Estimate{
		Pipeline: "demo", Community: d.names[i], Position: d.position, Time: d.now(),
		Method: method,
		Preset: "density", Kernel: "ppr", Lambda: 0.35 + 0.5*float64(i%7)/7,
		ModelVersion: "2026-09",
		Members:      d.members[i], Labelled: math.Round(d.members[i] / 12), Coverage: 0.94,
		Prevalence: shares,
		Confidence: 0.9, Certificate: 0.002 + 0.004*d.random.Float64(), NEff: make([]float64, k),
	}
	if d.round > d.switchAt {
		e.ModelVersion = "2026-10"
	}
	var thin []string
	for c, p := range shares {
		se := math.Sqrt(p*(1-p)/d.n[i]) / 1.5
		e.SE = append(e.SE, se)
		e.SEChange = append(e.SEChange, se/6)
		e.Low = append(e.Low, max(0, p-1.645*se))
		e.High = append(e.High, min(1, p+1.645*se))
		e.NEff[c] = d.n[i] * (0.4 + p)
		if e.NEff[c] < 9 && method == "auto" {
			thin = append(thin, strconv.Itoa(c))
		}
	}
	if len(thin) > 0 {
		e.Flags = append(e.Flags, quant.FlagThin+":"+strings.Join(thin, ","))
	}
	if method == "pcc" {
		e.Low, e.High, e.SE, e.SEChange = nil, nil, nil, nil
	}
	if i%23 == 5 {
		e.Coverage = 0.71
		e.Flags = append(e.Flags, quant.FlagLowCoverage)
	}
	if i%41 == 9 {
		e.Flags = append(e.Flags, quant.FlagShift+":0")
	}
	if i%31 == 4 {
		e.Flags = append(e.Flags, quant.FlagIllConditioned+":0~1")
	}
	return e
}

// blurred returns the counts of a classifier that errs.
func (d *demo) blurred(shares []float64) []float64 {
	out := make([]float64, len(shares))
	for k, p := range shares {
		out[k] = 0.72*p + 0.28/float64(len(shares))
	}
	return out
}

func (d *demo) count() {
	d.steps += 10
	for kind, n := range map[string]int{
		"edge": 4200, "prediction": 900, "label": 24, "member": 140,
		"vertex": 60, "control": 10,
	} {
		d.events[kind] += uint64(float64(n) * (0.8 + 0.4*d.random.Float64()))
	}
	if d.random.IntN(6) == 0 {
		d.refused["not-normal"]++
	}
}

// status returns the present status of a run loop.
func (d *demo) status() web.Status {
	wave := 0.5 + 0.5*math.Sin(float64(d.round)/9)
	return web.Status{
		State: "running", Position: d.position, End: d.position +
			uint64(900*wave*d.random.Float64()),
		LogTime: new(d.at), Steps: d.steps, StepSeconds: .011 * (0.6 + wave),
		Stages: []web.Stage{
			{Name: "apply", Seconds: .0019},
			{Name: "neighbourhood", Seconds: .0007},
			{Name: "diffusion", Seconds: .006 * (0.6 + wave)},
			{Name: "tally", Seconds: .0011},
			{Name: "solve", Seconds: .0023},
			{Name: "write", Seconds: .0004},
		},
		Events: maps.Clone(d.events), Refused: maps.Clone(d.refused),
		Checkpoint: &web.Checkpoint{
			Position: d.position - d.position%50_000, At: time.Now().Add(-38 * time.Second),
			Seconds: .412,
			Bytes:   188 << 20,
		},
		Graph: web.Graph{Vertices: 168_114, Edges: 6_797_557},
		Evidence: web.Evidence{
			Position: 1, Labels: web.Meeting{Vertices: 4_000, WithEdge: 1_999},
			Predictions: web.Meeting{Vertices: 160_000, WithEdge: 159_000},
		},
		Confusion: d.confusion(),
	}
}

// confusion has labels; most are right, and each class is sometimes taken for the next one.
func (d *demo) confusion() web.Confusion {
	counts := func(right uint64) web.Counts {
		c := web.NewCounts(len(d.classes))
		for k := range c {
			c[k][k], c[k][(k+1)%len(c)] = right, uint64(7*(k+1))
		}
		return c
	}
	out := web.Confusion{Position: d.position, Version: "bert-1", All: counts(90)}
	for i, name := range d.names {
		out.Communities = append(out.Communities,
			web.CommunityConfusion{Community: name, Counts: counts(uint64(40 - i%30))})
	}
	for i := range 3 {
		day := time.Date(2026, 3, 1+7*i, 8, 0, 0, 0, time.UTC)
		out.Periods = append(out.Periods, web.PeriodConfusion{
			From: day, To: day.AddDate(0, 0, 6), Counts: counts(uint64(40 - 10*i)),
		})
	}
	return out
}

func softmax(x []float64) []float64 {
	out := make([]float64, len(x))
	sum := 0.0
	for k, v := range x {
		out[k] = math.Exp(v)
		sum += out[k]
	}
	for k := range out {
		out[k] /= sum
	}
	return out
}
