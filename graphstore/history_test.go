package graphstore

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"gqlstream/ingest/event"
)

// history makes long random histories of the hard cases: hubs, repeated and opposed
// assertions, deletes to isolation, weights, expiry, attribute flips, members that come and
// go, erasures, and names that come back.
type history struct {
	rng      *rand.Rand
	classes  int
	vertices int
	weights  bool
	position event.Position
	time     event.Time
	release  int    // model version in use; the next one arrives while it is
	buffer   []byte // the strings of the last batch alias it
}

const testClasses = 3

var testRules = []Rule{
	{Name: "all", Kind: Everyone},
	{
		Name:  "german",
		Kind:  ByAttribute,
		Key:   "language",
		Value: event.Value{Kind: event.StringValue, Text: "de"},
	},
	{Name: "listed"},
	{
		Name:  "old",
		Kind:  ByAttribute,
		Key:   "age",
		Value: event.Value{Kind: event.NumberValue, Number: 90},
	},
	{
		Name:  "german too",
		Kind:  ByAttribute,
		Key:   "language",
		Value: event.Value{Kind: event.StringValue, Text: "de"},
	},
}

// testWindows are none, all, and one that is shorter than some assertions are late.
var testWindows = []Windows{{}, {Edges: 150, Labels: 90, Predictions: 120}, {Labels: 40}}

// allRules are testRules and rules of expressions and ego networks.
var allRules = append(slices.Clone(testRules), []Rule{
	{Name: "german adults", Kind: ByExpression, Expression: `language == "de" and age >= 89`},
	{Name: "not german", Kind: ByExpression, Expression: `language != "de"`},
	{Name: "near 1", Kind: Ego, Root: "vertex-1", Hops: 2},
	{Name: "few near 2", Kind: Ego, Root: "2", Hops: 3, MembersMax: 12},
	{Name: "near 5", Kind: Ego, Root: "vertex-5", Hops: 1},
	{Name: "far from 4", Kind: Ego, Root: "4", Hops: 3, MembersMax: 90},
}...)

func newHistory(seed uint64, vertices int, weights bool) *history {
	return &history{
		rng: rand.New(rand.NewPCG(seed, 7)), classes: testClasses,
		vertices: vertices, weights: weights, time: 1_000,
	}
}

// scribble destroys the memory of the last batch's strings, as a reused message
// buffer would.
func (h *history) scribble() {
	for i := range h.buffer {
		h.buffer[i] = '?'
	}
}

// text returns s in memory that the next batch overwrites.
func (h *history) text(s string) string { return aliasOf(&h.buffer, s) }

func (h *history) id() event.ID {
	n := h.rng.IntN(h.vertices)
	if h.rng.IntN(3) == 0 {
		n = h.rng.IntN(3) // hubs
	}
	n++ // the zero ID stands for "erased" in the twin
	if n%2 == 0 {
		return event.NumberID(uint64(n))
	}
	return event.ParseID(h.text(fmt.Sprintf("vertex-%d", n)))
}

// batch fills b with n events of mixed kinds.
func (h *history) batch(b *event.Batch, n int) {
	b.Reset()
	h.buffer = make([]byte, 0, 64*n+1024)
	h.time += event.Time(h.rng.IntN(50))
	b.First = h.position + 1
	b.Time = h.time
	if h.rng.IntN(8) == 0 { // erasures are a step of their own
		for range 1 + h.rng.IntN(3) {
			h.position++
			b.Vertices = append(
				b.Vertices,
				event.Vertex{Vertex: h.id(), Erase: true, Position: h.position},
			)
		}
		b.Last = h.position
		return
	}
	removing := h.rng.IntN(4) == 0
	for range n {
		h.position++
		switch draw := h.rng.IntN(100); {
		case draw < 65:
			b.Edges = append(b.Edges, h.edge(removing))
		case draw < 73:
			b.Labels = append(b.Labels, h.label())
		case draw < 81:
			b.Predictions = append(b.Predictions, h.prediction())
		case draw < 90:
			b.Members = append(b.Members, h.member())
		default:
			b.Vertices = append(b.Vertices, h.vertex())
		}
	}
	b.Last = h.position
}

func (h *history) edge(removing bool) event.Edge {
	e := event.Edge{Src: h.id(), Dst: h.id(), Weight: 1, Time: h.time, Position: h.position}
	switch {
	case removing && h.rng.IntN(3) > 0, h.rng.IntN(5) == 0:
		e.Remove = true
	case h.weights && h.rng.IntN(4) == 0:
		e.Weight = event.RoundWeight(0.25 + 3*h.rng.Float64())
	}
	if !e.Remove {
		e.Time, e.TTL = h.lifetime()
	}
	return e
}

// lifetime draws when an assertion was made and, now and then, how long it holds.
func (h *history) lifetime() (event.Time, time.Duration) {
	at := h.time
	if h.rng.IntN(3) == 0 {
		at -= event.Time(h.rng.IntN(100))
	}
	if h.rng.IntN(6) == 0 {
		return at, time.Duration(1 + h.rng.IntN(200))
	}
	return at, 0
}

func (h *history) label() event.Label {
	l := event.Label{
		Vertex: h.id(), Class: event.Class(h.rng.IntN(h.classes+1) - 1),
		Role: event.Role(h.rng.IntN(3)), Position: h.position,
	}
	if l.Role == event.Audit {
		l.Pi = event.PiMin + h.rng.Uint32N(event.One-event.PiMin+1)
	}
	l.Time, l.TTL = h.lifetime()
	return l
}

func (h *history) prediction() event.Prediction {
	if h.rng.IntN(6) == 0 {
		return event.Prediction{Vertex: h.id(), Position: h.position} // withdrawn
	}
	units := make([]uint32, h.classes)
	left := uint32(event.One)
	for i := range units[1:] {
		units[i] = left / 4 * uint32(h.rng.IntN(4))
		left -= units[i]
	}
	units[len(units)-1] = left
	p := event.Prediction{
		Vertex: h.id(), Units: units, Position: h.position,
		Version: h.text(h.version()),
	}
	p.Time, p.TTL = h.lifetime()
	return p
}

// version draws a model version: mostly the one in use and the next, some strays
// of others. Now and then the next comes into use.
func (h *history) version() string {
	release := h.release + h.rng.IntN(2)
	switch h.rng.IntN(20) {
	case 0:
		release = h.release + 2
	case 1, 2:
		release = max(0, h.release-1)
	case 3:
		if h.rng.IntN(4) == 0 {
			h.release++
		}
	}
	if release == 0 {
		return ""
	}
	return fmt.Sprint("v", release)
}

func (h *history) member() event.Member {
	name := []string{"listed", "german", "late", "later", "all"}[h.rng.IntN(5)]
	return event.Member{
		Community: h.text(name), Vertex: h.id(), Position: h.position,
		Multiplicity: uint32(max(0, h.rng.IntN(5)-1)),
	}
}

func (h *history) vertex() event.Vertex {
	e := event.Vertex{Vertex: h.id(), Position: h.position}
	for range h.rng.IntN(3) {
		a := event.Attribute{Key: h.text("language")}
		switch h.rng.IntN(6) {
		case 0:
		case 1:
			a.Value = event.Value{Kind: event.StringValue, Text: h.text("fr")}
		case 5:
			a.Key, a.Value = h.text("age"), event.Value{
				Kind: event.StringValue,
				Text: h.text("old"),
			}
		case 2:
			a.Key, a.Value = h.text("age"), event.Value{
				Kind:   event.NumberValue,
				Number: float64(88 + h.rng.IntN(4)),
			}
		default:
			a.Value = event.Value{Kind: event.StringValue, Text: h.text("de")}
		}
		e.Attributes = append(e.Attributes, a)
	}
	return e
}
