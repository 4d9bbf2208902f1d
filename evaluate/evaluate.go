package evaluate

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"

	"gqlstream/graphstore"
	"gqlstream/incremental"
	"gqlstream/ingest/event"
	"gqlstream/quant"
)

// Config says what is drawn. Zero fields get the default in brackets.
type Config struct {
	Core      incremental.Config // classes, methods, kernel; its communities are not used
	Protocols []string           // [pps, bfs, rw]; "group:KEY" draws one community per value
	Splits    int                // [5] random splits into calibration and hidden labels
	PerClass  int                // [10] communities per class, protocol and split
	Size      int                // [100] vertices of a community
	Share     float64            // [0.15] of the labelled vertices that stay calibration labels
	Seed      uint64
}

func (c Config) withDefaults() Config {
	if len(c.Protocols) == 0 {
		c.Protocols = []string{PPS, BFS, RW}
	}
	for field, value := range map[*int]int{&c.Splits: 5, &c.PerClass: 10, &c.Size: 100} {
		if *field == 0 {
			*field = value
		}
	}
	if c.Share == 0 {
		c.Share = 0.15
	}
	return c
}

// Validate reports every violation at once.
func (c Config) Validate() error {
	c = c.withDefaults()
	errs := []error{c.Core.Validate()}
	for _, p := range c.Protocols {
		if _, err := newProtocol(p); err != nil {
			errs = append(errs, err)
		}
	}
	for name, value := range map[string]int{"splits": c.Splits, "per class": c.PerClass, "size": c.Size} {
		if value < 1 {
			errs = append(errs, fmt.Errorf("%s: %d, want at least 1", name, value))
		}
	}
	if !(c.Share > 0 && c.Share < 1) {
		errs = append(errs, fmt.Errorf("calibration share: %v is not between 0 and 1", c.Share))
	}
	return errors.Join(errs...)
}

// Load delivers the data from the beginning: every batch in order, each valid
// during the visit. It is called once, and once more for every split.
type Load func(ctx context.Context, visit func(*event.Batch) error) error

// Run evaluates. progress, when not nil, is told after each split.
func Run(ctx context.Context, config Config, load Load, progress func(done, all int)) (*Report, error) {
	if err := config.Validate(); err != nil {
		return nil, fmt.Errorf("evaluate: %w", err)
	}
	config = config.withDefaults()
	data, err := read(ctx, config, load)
	if err != nil {
		return nil, fmt.Errorf("evaluate: %w", err)
	}
	defer data.store.Release()
	report := newReport(config, data)
	for split := range config.Splits {
		bags, calibration, err := data.draw(config, split)
		if err != nil {
			return nil, fmt.Errorf("evaluate: %w", err)
		}
		estimates, err := data.estimate(ctx, config, load, bags, calibration)
		if err != nil {
			return nil, fmt.Errorf("evaluate: split %d: %w", split, err)
		}
		report.add(split, bags, estimates)
		if progress != nil {
			progress(split+1, config.Splits)
		}
	}
	return report, nil
}

// dataset is the user's graph with all its labels known.
type dataset struct {
	store    *graphstore.Store
	view     graphstore.View
	classes  int
	labelled []graphstore.Vertex // that may calibrate or be drawn, sorted
}

// read loads the graph. Vertices with a label of role train keep it in every split
// and are never drawn.
func read(ctx context.Context, config Config, load Load) (*dataset, error) {
	store, err := graphstore.New(graphstore.Config{Classes: config.Core.Classes})
	if err != nil {
		return nil, err
	}
	err = load(ctx, func(b *event.Batch) error {
		_, refused := store.Apply(b)
		if len(refused) > 0 {
			return fmt.Errorf("position %d: %s: %s", refused[0].Position, refused[0].Reason, refused[0].Detail)
		}
		return nil
	})
	if err != nil {
		store.Release()
		return nil, err
	}
	d := &dataset{store: store, view: store.View(), classes: config.Core.Classes}
	for v := range graphstore.Vertex(d.view.Vertices()) {
		if l := d.view.Label(v); l.Class != event.NoClass && l.Role == event.Calibrate {
			d.labelled = append(d.labelled, v)
		}
	}
	if len(d.labelled) < 10 {
		store.Release()
		return nil, fmt.Errorf("only %d labelled vertices; evaluation hides most labels and needs many", len(d.labelled))
	}
	return d, nil
}

// bag is one drawn community and its truth.
type bag struct {
	name     string
	protocol string
	members  map[graphstore.Vertex]uint32
	size     int
	truth    []float64
}

// draw splits the labels and draws the communities of one split from the hidden
// ones.
func (d *dataset) draw(config Config, split int) (bags []*bag, calibration []graphstore.Vertex, err error) {
	r := rand.New(rand.NewPCG(config.Seed, uint64(split)<<8))
	shuffled := slices.Clone(d.labelled)
	r.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	cut := max(1, int(config.Share*float64(len(shuffled))))
	calibration = shuffled[:cut]
	pool := newPool(d, shuffled[cut:])
	for i, name := range config.Protocols {
		protocol, err := newProtocol(name)
		if err != nil {
			return nil, nil, err
		}
		r := rand.New(rand.NewPCG(config.Seed, uint64(split)<<8+uint64(i)+1))
		drawn := protocol(pool, config, r)
		if len(drawn) == 0 {
			return nil, nil, fmt.Errorf("protocol %s draws no community from this graph", name)
		}
		for j, members := range drawn {
			bags = append(bags, d.bag(name, name+"-"+strconv.Itoa(j), members))
		}
	}
	return bags, calibration, nil
}

func (d *dataset) bag(protocol, name string, members map[graphstore.Vertex]uint32) *bag {
	b := &bag{name: name, protocol: protocol, members: members, truth: make([]float64, d.classes)}
	for v, m := range members {
		b.truth[d.view.Label(v).Class] += float64(m)
		b.size += int(m)
	}
	for i := range b.truth {
		b.truth[i] /= float64(b.size)
	}
	return b
}

// estimate runs the core once over the data with the labels of the split and all
// its communities, and returns the estimates by community and method.
func (d *dataset) estimate(ctx context.Context, config Config, load Load, bags []*bag,
	calibration []graphstore.Vertex,
) (map[key]quant.Estimate, error) {
	core, err := incremental.New(config.Core)
	if err != nil {
		return nil, err
	}
	defer core.Close()
	var last event.Position
	err = load(ctx, func(b *event.Batch) error {
		hidden := *b
		hidden.Emit, hidden.Members = false, nil
		hidden.Labels = slices.DeleteFunc(slices.Clone(b.Labels), func(l event.Label) bool { return l.Role != event.Train })
		core.Step(&hidden)
		last = b.Last
		return nil
	})
	if err != nil {
		return nil, err
	}
	result := core.Step(d.splitBatch(last, bags, calibration))
	if len(result.Refused) > 0 {
		return nil, fmt.Errorf("%s: %s", result.Refused[0].Reason, result.Refused[0].Detail)
	}
	out := map[key]quant.Estimate{}
	for _, e := range result.Estimates {
		out[key{e.Community, e.Method}] = e
	}
	return out, nil
}

type key struct{ community, method string }

// splitBatch asserts the labels of a split and the members of its communities.
func (d *dataset) splitBatch(last event.Position, bags []*bag, calibration []graphstore.Vertex) *event.Batch {
	b := &event.Batch{First: last + 1, Last: last + 1, Emit: true}
	for _, v := range calibration {
		b.Labels = append(b.Labels, event.Label{
			Vertex: d.view.ID(v), Class: d.view.Label(v).Class, Position: b.Last,
		})
	}
	for _, bag := range bags {
		for v, m := range bag.members {
			b.Members = append(b.Members, event.Member{
				Community: bag.name, Vertex: d.view.ID(v), Multiplicity: m, Position: b.Last,
			})
		}
	}
	return b
}
