package evaluate

import (
	"context"
	"math/rand/v2"
	"strconv"
	"testing"

	"gqlstream/graphstore"
	"gqlstream/incremental"
	"gqlstream/ingest/event"
	"gqlstream/quant"
)

// world is a random labelled graph: groups of vertices that mostly know their own,
// and a classifier that is right most of the time.
type world struct {
	seed     uint64
	n, k     int
	islands  int     // vertices in small components of their own, 4 each
	accuracy float64 // 0 is 0.8
	train    int     // the first of the labels, with the role train
	weighted bool

	edges []event.Edge
	class []event.Class
}

func (w *world) id(v int) event.ID { return event.ParseID("v" + strconv.Itoa(v)) }

// make draws the edges and classes, once.
func (w *world) make() {
	if w.class != nil {
		return
	}
	if w.accuracy == 0 {
		w.accuracy = 0.8
	}
	r := rand.New(rand.NewPCG(w.seed, 1))
	for v := range w.n {
		w.class = append(w.class, event.Class(v%w.k))
	}
	connect := func(u, v int) {
		e := event.Edge{Src: w.id(u), Dst: w.id(v), Weight: 1}
		if w.weighted {
			e.Weight = event.RoundWeight(0.5 + r.Float64())
		}
		w.edges = append(w.edges, e)
	}
	mainland := w.n - w.islands
	for v := w.k; v < mainland; v++ {
		connect(v, v-w.k) // a path through each class
		for range 2 {
			if u := r.IntN(v); r.Float64() < 0.2 || w.class[u] == w.class[v] {
				connect(v, u)
			}
		}
	}
	for v := mainland; v+1 < w.n; v++ {
		if (v-mainland)%4 != 3 {
			connect(v, v+1)
		}
	}
}

func (w *world) predictions() []event.Prediction {
	r := rand.New(rand.NewPCG(w.seed, 2))
	var out []event.Prediction
	for v := range w.n {
		says := int(w.class[v])
		if r.Float64() >= w.accuracy {
			says = r.IntN(w.k)
		}
		sure := 0.5 + 0.4*r.Float64()
		if w.accuracy == 1 {
			sure = 1
		}
		p := make([]float64, w.k)
		for i := range p {
			p[i] = (1 - sure) / float64(w.k-1)
		}
		p[says] = sure
		units := make([]uint32, w.k)
		left := uint32(event.One)
		for i := range p[1:] {
			units[i+1] = uint32(p[i+1] * event.One)
			left -= units[i+1]
		}
		units[0] = left
		out = append(out, event.Prediction{Vertex: w.id(v), Units: units, Version: "m1"})
	}
	return out
}

func (w *world) labels() []event.Label {
	var out []event.Label
	for v := range w.n {
		l := event.Label{Vertex: w.id(v), Class: w.class[v]}
		if v < w.train {
			l.Role = event.Train
		}
		out = append(out, l)
	}
	return out
}

// vertices have the attributes parity, text, and flag, on every tenth only.
func (w *world) vertices() []event.Vertex {
	var out []event.Vertex
	for v := range w.n {
		parity := event.Value{Kind: event.StringValue, Text: []string{"even", "odd"}[v%2]}
		attributes := []event.Attribute{{Key: "parity", Value: parity}}
		if v%10 == 0 {
			attributes = append(
				attributes,
				event.Attribute{Key: "flag", Value: event.Value{Kind: event.BoolValue, Number: 1}},
			)
		}
		out = append(out, event.Vertex{Vertex: w.id(v), Attributes: attributes})
	}
	return out
}

// load delivers the world in small batches and overwrites their memory after every visit,
// as a source that reuses memory would. more is appended at the end.
func (w *world) load(more ...*event.Batch) Load {
	w.make()
	return func(_ context.Context, visit func(*event.Batch) ([]event.Refusal, error)) error {
		vertices, labels, predictions, edges := w.vertices(), w.labels(), w.predictions(), w.edges
		position := event.Position(1)
		for len(vertices)+len(labels)+len(predictions)+len(edges) > 0 {
			b := &event.Batch{First: position, Last: position}
			b.Vertices, vertices = cutOff(vertices, 50)
			b.Labels, labels = cutOff(labels, 50)
			b.Predictions, predictions = cutOff(predictions, 50)
			b.Edges, edges = cutOff(edges, 50)
			position++
			if _, err := visit(b); err != nil {
				return err
			}
			for _, p := range b.Predictions {
				clear(p.Units)
			}
			b.Reset()
		}
		for _, b := range more {
			b.First, b.Last = position, position
			position++
			if _, err := visit(b); err != nil {
				return err
			}
		}
		return nil
	}
}

// cutOff returns copies of the first n and the rest.
func cutOff[T any](list []T, n int) (first, rest []T) {
	n = min(n, len(list))
	return append([]T(nil), list[:n]...), list[n:]
}

// config returns the configuration of a small evaluation of the world with the given methods.
func (w *world) config(methods ...quant.Method) Config {
	c := Config{
		Core:       incremental.Config{Classes: w.k},
		Protocols:  []string{pps, bfs, rw},
		Splits:     2,
		PerClass:   3,
		Size:       40,
		MembersMin: 11,
		Share:      0.15,
		Seed:       7,
	}
	for _, m := range methods {
		o := quant.DefaultOptions()
		o.Method = m
		c.Core.Estimates = append(c.Core.Estimates, o)
	}
	return c
}

// data reads the world as Run does.
func (w *world) data(t *testing.T, c Config, more ...*event.Batch) *dataset {
	t.Helper()
	d, err := read(t.Context(), c.WithDefaults(), w.load(more...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.release)
	return d
}

func run(t *testing.T, c Config, load Load) *Report {
	t.Helper()
	report, err := Run(t.Context(), c, load, nil)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// indexOf returns the number in the name of a vertex of a world.
func indexOf(t *testing.T, d *dataset, v graphstore.Vertex) int {
	t.Helper()
	n, err := strconv.Atoi(d.ids[v].String()[1:])
	if err != nil {
		t.Fatal(err)
	}
	return n
}
