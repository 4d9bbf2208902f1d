package evaluate

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strconv"

	"gqlstream/graphstore"
	"gqlstream/incremental"
	"gqlstream/incremental/diffusion"
	"gqlstream/incremental/neighborhood"
	"gqlstream/incremental/pairs"
	"gqlstream/ingest/event"
	"gqlstream/quant"
)

const (
	labelledMin = 20      // fewer labelled vertices are not worth splitting
	feedEvents  = 4096    // of a batch that copies the graph to a core
	fieldsMax   = 1 << 24 // kernel values that a core may hold at once, over its communities
	bagsMin     = 8       // communities of a core, however many values those have
)

// dataset is the user's graph with all its labels known.
type dataset struct {
	store    *graphstore.Store
	view     graphstore.View
	classes  int
	ids      []event.ID          // by vertex
	labelled []graphstore.Vertex // that may calibrate or be drawn, sorted
	ageing   bool                // labels count less as they age
	fresh    float64             // mean label freshness when the log ends, in [0, 1]
}

// read loads the graph.
func read(ctx context.Context, config Config, load Load) (*dataset, error) {
	store, err := graphstore.New(graphstore.Config{
		Classes:     config.Core.Classes,
		Limits:      config.Core.Limits,
		Communities: config.Core.Communities,
		SwitchAt:    config.Core.Models.SwitchAt,
		LapseAfter:  config.Core.Models.LapseAfter,
		Evidence: graphstore.EvidenceConfig{
			Except: config.Core.Evidence.Except, Attributes: config.Core.Evidence.Attributes,
		},
	})
	if err != nil {
		return nil, err
	}
	d := &dataset{
		store: store, classes: config.Core.Classes, ageing: config.Core.HalfLife > 0,
	}
	sums, paired := neighborhood.New(d.classes, false), pairs.New(d.classes, false)
	err = load(ctx, func(b *event.Batch) ([]event.Refusal, error) {
		delta, refused := store.Apply(b)
		sums.Update(store.View(), delta)
		paired.Update(store.View(), delta, sums)
		return refused, nil
	})
	if err != nil {
		d.release()
		return nil, err
	}
	d.view, d.fresh = store.View(), paired.Freshness()
	for v := range graphstore.Vertex(d.view.Vertices()) {
		d.ids = append(d.ids, d.view.ID(v))
		if l := d.view.Label(v); l.Class != event.NoClass && l.Role == event.Calibrate {
			d.labelled = append(d.labelled, v)
		}
	}
	if config.Core.Kernel == diffusion.Features {
		if err := diffusion.CheckFeatures(d.view); err != nil {
			d.release()
			return nil, err
		}
	}
	if n := len(d.labelled); n < labelledMin {
		d.release()
		return nil, fmt.Errorf(
			"%d labelled vertices (other than those with the role train), want at least %d: "+
				"most labels are hidden to be estimated",
			n,
			labelledMin,
		)
	}
	return d, nil
}

func (d *dataset) release() { d.store.Release() }

// bag is one drawn community, its truth, and its estimates.
type bag struct {
	name     string // with its protocol, unique within a split
	protocol string
	members  []member // sorted by vertex
	size     int      // total multiplicity
	truth    []float64

	estimates []quant.Estimate
}

// calibrating returns the number of labelled vertices that keep their labels in a split.
func (d *dataset) calibrating(share float64) int {
	n := len(d.labelled)
	return min(max(1, int(share*float64(n))), n-1)
}

// draw splits the labels and draws the communities of one split from the hidden ones.
func (d *dataset) draw(
	config Config,
	split int,
) (bags []*bag, calibration []graphstore.Vertex, err error) {
	r := rand.New(rand.NewPCG(config.Seed, uint64(split)))
	shuffled := slices.Clone(d.labelled)
	r.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	calibration, hidden := d.drawLabels(shuffled, config, event.Class(split%d.classes), r)
	slices.Sort(calibration)
	pool := newPool(d, hidden)
	for _, name := range config.Protocols {
		protocol, err := newProtocol(name)
		if err != nil {
			return nil, nil, err
		}
		drawn := slices.DeleteFunc(
			protocol(pool, config,
				rand.New(rand.NewPCG(config.Seed, uint64(split)<<32+hash32(name)))),
			func(d drawn) bool { return len(d.members) < config.MembersMin },
		)
		if len(drawn) == 0 {
			return nil, nil, fmt.Errorf(
				"protocol %s draws no community with %d different vertices "+
					"from the %d hidden labels of split %d",
				name,
				config.MembersMin,
				len(hidden),
				split,
			)
		}
		for _, one := range drawn {
			bags = append(bags, d.bag(name, one))
		}
	}
	return bags, calibration, nil
}

// hash32 numbers a protocol by its name, never zero.
func hash32(name string) uint64 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name)) // cannot fail
	return uint64(max(h.Sum32(), 1))
}

func (d *dataset) bag(protocol string, one drawn) *bag {
	b := &bag{
		name:     protocol + "/" + one.name,
		protocol: protocol,
		truth:    make([]float64, d.classes),
	}
	for v, m := range one.members {
		b.members = append(b.members, member{v, m})
		b.size += int(m)
		b.truth[d.view.Label(v).Class] += float64(m) // whole numbers: exact in any order
	}
	slices.SortFunc(b.members, func(x, y member) int { return cmp.Compare(x.vertex, y.vertex) })
	for i := range b.truth {
		b.truth[i] /= float64(b.size)
	}
	return b
}

// estimate fills in the estimates of all communities of a split, those of one core
// at a time, so that the memory for kernels stays bounded.
func (d *dataset) estimate(
	ctx context.Context, config Config, bags []*bag, calibration []graphstore.Vertex,
	progress func(done int),
) error {
	most, done := max(bagsMin, fieldsMax/max(d.view.Vertices(), 1)), 0
	if config.Ask > 0 { // labels of one community move all that share members with it
		most = bagsMin
	}
	for chunk := range slices.Chunk(bags, most) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := d.estimateChunk(config, chunk, calibration); err != nil {
			return err
		}
		done += len(chunk)
		progress(done)
	}
	return nil
}

// estimateChunk runs one core over the graph with the labels of the split and the
// members of some of its communities.
func (d *dataset) estimateChunk(config Config, bags []*bag, calibration []graphstore.Vertex) error {
	core, err := incremental.New(config.estimator(bags))
	if err != nil {
		return err
	}
	defer core.Close()
	keys := d.view.EvidenceAttributes()
	if config.Core.Kernel == diffusion.Features {
		keys = d.view.AttributeKeys()
	}
	last := d.feed(core, keys)
	result := core.Step(d.splitBatch(last+1, bags, calibration))
	if len(result.Refused) > 0 {
		return fmt.Errorf("%s: %s", result.Refused[0].Reason, result.Refused[0].Detail)
	}
	for _, e := range result.Estimates {
		i, err := strconv.Atoi(e.Community)
		if err != nil {
			return fmt.Errorf("an estimate of %q, which was not drawn", e.Community)
		}
		e.Community = bags[i].name
		if e.Method != string(quant.Audits) { // nobody is audited yet
			bags[i].estimates = append(bags[i].estimates, e)
		}
	}
	if config.Ask > 0 {
		return d.simulateAsking(core, bags, config)
	}
	return nil
}

// splitBatch asserts the labels of a split and the members of communities, which
// are named by their index.
func (d *dataset) splitBatch(
	position event.Position,
	bags []*bag,
	calibration []graphstore.Vertex,
) *event.Batch {
	b := &event.Batch{First: position, Last: position, Emit: true}
	for _, v := range calibration {
		at := event.Time(0)
		if d.ageing {
			at = d.view.LabelTime(v)
		}
		b.Labels = append(
			b.Labels,
			event.Label{
				Vertex:   d.ids[v],
				Class:    d.view.Label(v).Class,
				Position: position,
				Time:     at,
			},
		)
		b.Time = max(b.Time, at)
	}
	for i, bag := range bags {
		name := strconv.Itoa(i)
		for _, m := range bag.members {
			b.Members = append(b.Members, event.Member{
				Community:    name,
				Vertex:       d.ids[m.vertex],
				Multiplicity: m.multiplicity,
				Position:     position,
			})
		}
	}
	return b
}

// feed gives the core the events that every split has in common: predictions, train labels
// edges and these attributes. It returns the last position.
func (d *dataset) feed(core *incremental.Core, keys []string) event.Position {
	b := &event.Batch{First: 1}
	next := event.Position(1)
	flush := func(least int) {
		if b.Events() >= least {
			b.Last = next - 1
			core.Step(b)
			b.Reset()
			b.First = next
		}
	}
	for v := range graphstore.Vertex(d.view.Vertices()) {
		if len(keys) > 0 {
			of := event.Vertex{Vertex: d.ids[v], Position: next}
			for _, key := range keys { // one that it does not have removes nothing
				of.Attributes = append(of.Attributes,
					event.Attribute{Key: key, Value: d.view.Attribute(v, key)})
			}
			b.Vertices = append(b.Vertices, of)
			next++
		}
		if units := d.view.Prediction(v); units != nil {
			b.Predictions = append(b.Predictions, event.Prediction{
				Vertex:   d.ids[v],
				Units:    units,
				Version:  d.view.Versions()[d.view.Version(v)],
				Position: next,
			})
			next++
		}
		if l := d.view.Label(v); l.Class != event.NoClass && l.Role == event.Train {
			b.Labels = append(b.Labels,
				event.Label{Vertex: d.ids[v], Class: l.Class, Role: l.Role, Position: next})
			next++
		}
		for u, weight := range d.view.EdgesOf(v) {
			if u > v { // else the other end asserts it
				b.Edges = append(b.Edges,
					event.Edge{Src: d.ids[v], Dst: d.ids[u], Weight: weight, Position: next})
				next++
			}
		}
		flush(feedEvents)
	}
	flush(1)
	return next - 1
}
