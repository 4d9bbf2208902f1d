package pairs

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"gqlstream/graphstore"
	"gqlstream/incremental/neighborhood"
	"gqlstream/ingest/event"
	"gqlstream/ingest/event/eventtest"
)

// After every batch of a random history the pairs and their neighbours' votes must equal
// those of a twin that keeps all predictions of a vertex and reads the graph by hand. A
// restored state must equal one that never stopped.
func TestPairsEqualTheirTwin(t *testing.T) {
	const histories = 400
	seen := map[string]int{}
	for seed := range uint64(histories) {
		stream := eventtest.New(seed, eventtest.Config{
			Vertices: 3 + int(seed%20), Erase: seed%3 == 0, TTL: seed%5 == 0, Withdraw: seed%2 == 0,
			RollOuts: seed%4 == 1, Audits: seed%7 == 0,
		})
		store, err := graphstore.New(graphstore.Config{Classes: stream.Config.Classes})
		if err != nil {
			t.Fatal(err)
		}
		hard, random := seed%2 == 1, rand.New(rand.NewPCG(seed, 5))
		sums := neighborhood.New(stream.Config.Classes, hard)
		pairs := New(stream.Config.Classes, hard)
		half := time.Duration(seed%3) * 4 * time.Second // 0: labels do not age
		pairs.LetAge(half, 0)
		twin := &twin{
			half:    half,
			hard:    hard,
			classes: stream.Config.Classes,
			said:    map[Vertex][]said{},
			waits:   map[Vertex]uint32{},
		}
		for i := range 25 {
			batch := stream.Next()
			setBack(batch, random)
			delta, _ := store.Apply(batch)
			view := store.View()
			sums.Update(view, delta)
			pairs.Update(view, delta, sums)
			twin.step(view, delta)
			if pairs.Age(batch.Time) {
				pairs.Update(view, &graphstore.Delta{}, sums)
				seen["aged"]++
			}
			twin.age(batch.Time)
			if err := twin.compare(pairs, view, seen); err != nil {
				t.Fatalf("seed %d batch %d: %v", seed, i, err)
			}
			if i%4 == 3 {
				restored, err := Restore(stream.Config.Classes, hard, half, batch.Time,
					pairs.Rows(), view)
				if err != nil {
					t.Fatal(err)
				}
				if err := same(pairs, restored); err != nil {
					t.Fatalf("seed %d batch %d: restored: %v", seed, i, err)
				}
				pairs = restored
			}
		}
		store.Release()
	}
	for _, what := range []string{"frozen", "current", "stale", "withdrawn", "waiting", "aged"} {
		if seen[what] < histories {
			t.Errorf("%d labels were %s in %d histories", seen[what], what, histories)
		}
	}
	t.Logf("%v", seen)
}

// setBack lets labels and predictions be older than the batch that brings them.
func setBack(b *event.Batch, r *rand.Rand) {
	late := func(t *event.Time) {
		if r.IntN(2) == 0 {
			*t -= event.Time(r.IntN(20)) * event.Time(time.Second)
		}
	}
	for i := range b.Labels {
		late(&b.Labels[i].Time)
	}
	for i := range b.Predictions {
		late(&b.Predictions[i].Time)
	}
}

// said is a prediction of a labelled vertex, with the predictions and labels around it when
// another prediction, or none, replaced it.
type said struct {
	units   []uint32 // nil: none
	version uint32
	came    event.Time // its time when it came
	time    event.Time // its time when it was said last
	derived bool

	observed uint32
	passed   bool // a corrected label waited while another one took its place

	votes      neighborhood.Votes
	neighbours uint32
	next       []uint32
	labels     []uint32
	walks      []uint32
}

// twin replays a history. For every vertex with a label it keeps the prediction that the
// label found, and all later ones.
type twin struct {
	classes int
	hard    bool
	said    map[Vertex][]said
	last    map[Vertex]uint32 // freshness

	half time.Duration // after which labels lose half of their freshness; 0: never
	now  event.Time    // start of the present eighth of it

	before  world
	weights map[Vertex]Weight
	waits   map[Vertex]uint32
}

// world is a copy of all that is read of a graph.
type world struct {
	near   map[Vertex][]Vertex
	label  map[Vertex]graphstore.Label
	at     map[Vertex]event.Time
	now    map[Vertex]said
	active uint32
}

func readWorld(view graphstore.View) world {
	c := world{
		map[Vertex][]Vertex{},
		map[Vertex]graphstore.Label{},
		map[Vertex]event.Time{},
		map[Vertex]said{},
		noVersion,
	}
	if active, known := view.ActiveVersion(); known {
		c.active = active
	}
	for v := range Vertex(view.Vertices()) {
		c.near[v] = slices.Clone(view.Neighbors(v))
		if l := view.Label(v); l.Class != event.NoClass {
			c.label[v], c.at[v] = l, view.LabelTime(v)
		}
		if units := view.Prediction(v); units != nil {
			c.now[v] = said{
				units: slices.Clone(units), version: view.Version(v),
				came: view.Evidence(v).Time, time: view.Evidence(v).Time,
				observed: view.Evidence(v).Observations,
				derived:  graphstore.IsDerived(view.Versions()[view.Version(v)]),
			}
		}
	}
	return c
}

// step notes the new predictions.
func (w *twin) step(view graphstore.View, delta *graphstore.Delta) {
	now := readWorld(view)
	ended := map[Vertex]bool{} // the last thing said
	for v, l := range now.label {
		old, had := w.before.label[v]
		if !had || old != l || w.before.at[v] != now.at[v] || slices.Contains(delta.Reused, v) {
			w.said[v] = nil
			if !slices.Contains(delta.Reused, v) {
				if found, was := w.before.now[v]; was {
					w.said[v] = []said{found}
				}
			}
		}
		w.correct(v, had && !slices.Contains(delta.Reused, v), old.Class, l.Class)
		list := w.said[v]
		n := len(list)
		switch is, predicted := now.now[v], now.now[v].units != nil; {
		case n == 0 && predicted:
			w.said[v] = []said{is}
		case n == 0:
		case predicted && (is.version != list[n-1].version ||
			!slices.Equal(is.units, list[n-1].units)),
			!predicted && list[n-1].units != nil:
			list[n-1].votes = w.votes(w.before, v)
			ended[v] = true
			w.wait(v, now.at[v], is)
			w.said[v] = append(list, is)
		default:
			list[n-1].time, list[n-1].observed = is.time, is.observed
		}
		if list := w.said[v]; len(list) > 0 && list[len(list)-1].units == nil &&
			now.active != w.versionOf(v) {
			w.said[v] = nil // the version in use is another one
		}
	}
	for v := range w.said {
		if _, labelled := now.label[v]; !labelled {
			delete(w.said, v)
			delete(w.waits, v)
		}
	}
	w.weigh(now)
	for v := range ended {
		if list := w.said[v]; len(list) > 1 {
			w.look(now, v, &list[len(list)-2])
		}
	}
	w.before = now
}

// correct has a label wait that contradicts the one before it.
func (w *twin) correct(v Vertex, had bool, before, now event.Class) {
	if !had {
		delete(w.waits, v)
	} else if before != now {
		w.waits[v] = correctedWaits
	}
}

// wait passes over the last thing said of v where its label waits and the next thing would freeze
// the pair.
func (w *twin) wait(v Vertex, label event.Time, next said) {
	list := w.said[v]
	last := &list[len(list)-1]
	if _, frozen := w.pair(v, label); frozen || w.waits[v] == 0 || !last.freezes(&next, label) {
		return
	}
	last.passed = true
	if w.waits[v]--; w.waits[v] == 0 {
		delete(w.waits, v)
	}
}

// freezes reports whether s stays nearest to a label although next follows.
func (s *said) freezes(next *said, label event.Time) bool {
	d := func(t event.Time) event.Time { return max(t-label, label-t) }
	nearer := d(next.came) < d(s.time) || d(next.came) == d(s.time) && next.came < s.time
	return s.units != nil && !s.derived &&
		(next.units == nil || next.version == s.version && next.came != s.time && !nearer)
}

// versionOf returns the version of the last prediction of v.
func (w *twin) versionOf(v Vertex) uint32 {
	for _, s := range slices.Backward(w.said[v]) {
		if s.units != nil {
			return s.version
		}
	}
	return noVersion
}

// pair returns the prediction that is paired with the label of v, and whether a later
// prediction froze the pair. Only the predictions after the last one of another model
// version count. The pair is the first of them with no nearer successor.
func (w *twin) pair(v Vertex, label event.Time) (pair *said, frozen bool) {
	list := w.said[v]
	for i, s := range slices.Backward(list) {
		if s.units != nil && s.version != w.versionOf(v) {
			list = list[i+1:]
			break
		}
	}
	for len(list) > 0 && list[0].units == nil {
		list = list[1:]
	}
	for i := range list {
		if i+1 == len(list) {
			return &list[i], false
		}
		if !list[i].passed && list[i].freezes(&list[i+1], label) {
			return &list[i], true
		}
	}
	return nil, false
}

// weigh sets how fresh every label is.
func (w *twin) weigh(now world) {
	last := w.last
	w.weights, w.last = map[Vertex]Weight{}, map[Vertex]uint32{}
	for v, l := range now.label {
		pair, frozen := w.pair(v, now.at[v])
		fresh := uint32(Whole)
		if units := now.now[v].units; frozen && units != nil {
			apart := 0.0
			for i, x := range units {
				apart += max(float64(x)-float64(pair.units[i]), float64(pair.units[i])-float64(x))
			}
			fresh = uint32(Whole*(1-float64(int64(apart/2))/event.One) + 0.5)
		} else if frozen && (w.before.now[v].units == nil || w.frozenBefore(v)) {
			fresh = last[v]
		}
		w.last[v] = fresh
		if pair != nil && pair.units != nil && l.Role == event.Calibrate {
			w.weights[v] = Weight{l.Class, w.aged(fresh, now.at[v])}
		}
	}
}

// age gives labels their age at a time.
func (w *twin) age(now event.Time) {
	if w.half == 0 {
		return
	}
	w.now = now - now%event.Time(w.half/8)
	for v, weight := range w.weights {
		w.weights[v] = Weight{weight.Class, w.aged(w.last[v], w.before.at[v])}
	}
}

// aged returns the freshness of a label that was asserted at a time: it falls by an eighth root of
// two in each eighth of the half-life.
func (w *twin) aged(fresh uint32, asserted event.Time) uint32 {
	if w.half == 0 || asserted > w.now {
		return fresh
	}
	steps := int(8 * float64(w.now-asserted) / float64(w.half))
	factor := math.Round(65536 * math.Exp2(-float64(steps%8)/8))
	return uint32(math.Floor(float64(fresh)*factor/65536)) >> (steps / 8)
}

// frozenBefore reports whether the pair of v was frozen before the last thing was said.
func (w *twin) frozenBefore(v Vertex) bool {
	list := w.said[v]
	cut := &twin{said: map[Vertex][]said{v: list[:len(list)-1]}}
	_, frozen := cut.pair(v, w.before.at[v])
	return frozen
}

// votes returns the mean of the votes of the neighbours of v, as of one neighbour.
func (w *twin) votes(in world, v Vertex) neighborhood.Votes {
	mean, hard, n := make([]uint64, w.classes), make([]uint64, w.classes), uint64(0)
	for _, u := range in.near[v] {
		if s, predicted := in.now[u]; predicted {
			n++
			for i, x := range s.units {
				mean[i] += uint64(x)
			}
			hard[neighborhood.HardClass(s.units)]++
		}
	}
	votes := neighborhood.Votes{Sum: mean}
	if w.hard {
		votes.Hard = make([]uint64, w.classes)
	}
	if n > 0 {
		votes.Mass = 1
		for i := range mean {
			mean[i] /= n
		}
		if w.hard {
			votes.Hard[neighborhood.HardClass(hard)] = 1
		}
	}
	return votes
}

// around counts the labels among the neighbours of v but one.
func (w *twin) around(in world, v Vertex, without *Vertex) []uint32 {
	counts := make([]uint32, w.classes)
	for _, u := range in.near[v] {
		if l, is := w.weights[u]; is && (without == nil || u != *without) {
			counts[l.Class] += l.Units
		}
	}
	return counts
}

// look reads the predictions and labels around v.
func (w *twin) look(in world, v Vertex, s *said) {
	s.labels = w.around(in, v, nil)
	s.next, s.walks = make([]uint32, w.classes), make([]uint32, w.classes)
	for _, u := range in.near[v] {
		votes, n := make([]float64, w.classes), 0.0
		for _, x := range in.near[u] {
			if s, predicted := in.now[x]; predicted {
				n++
				for i, unit := range s.units {
					votes[i] += float64(unit)
				}
			}
		}
		if n > 0 {
			s.neighbours++
			for i, x := range votes {
				s.next[i] += uint32(x*(Unit/(n*event.One)) + 0.5)
			}
		}
		for i, x := range w.around(in, u, &v) {
			s.walks[i] += uint32(uint64(x) * Unit / uint64(Whole*len(in.near[u])))
		}
	}
}

// compare holds pairs against the twin.
func (w *twin) compare(p *Pairs, view graphstore.View, seen map[string]int) error {
	for v := range Vertex(view.Vertices()) {
		pair, frozen := w.pair(v, w.before.at[v])
		if view.Label(v).Class == event.NoClass {
			pair, frozen = nil, false
		}
		have := p.Frozen(v)
		if (have != nil) != frozen {
			return fmt.Errorf("the pair of vertex %d is %+v, want %+v", v, have, pair)
		}
		if frozen {
			seen["frozen"]++
			if view.Prediction(v) == nil {
				seen["withdrawn"]++
			}
			want := &Pair{
				Version: pair.version, Time: pair.time, Observed: pair.observed,
				Own: pair.units, Votes: pair.votes,
				Neighbours: pair.neighbours, Next: pair.next, Labels: pair.labels,
				Walks: pair.walks,
				Fresh: w.last[v],
			}
			if want.Fresh < Whole {
				seen["stale"]++
			}
			if !reflect.DeepEqual(have, want) {
				return fmt.Errorf("the pair of vertex %d is %+v, want %+v", v, have, want)
			}
		} else if pair != nil {
			seen["current"]++
		}
		if p.waits[v] != w.waits[v] {
			return fmt.Errorf(
				"the pair of vertex %d waits for %d, want %d", v, p.waits[v], w.waits[v],
			)
		}
		if w.waits[v] > 0 {
			seen["waiting"]++
		}
		weight, is := w.weights[v]
		if !is {
			weight = noWeight
		}
		if p.weights[v] != weight {
			return fmt.Errorf("the label of vertex %d counts %v, want %v", v, p.weights[v], weight)
		}
		if counts := w.around(w.before, v, nil); !slices.Equal(p.Labels(v), counts) {
			return fmt.Errorf("labels around vertex %d are %v, want %v", v, p.Labels(v), counts)
		}
	}
	return nil
}

// same names the first difference of two states.
func same(a, b *Pairs) error {
	switch {
	case !reflect.DeepEqual(a.frozen, b.frozen):
		return fmt.Errorf("pairs %v, want %v", b.frozen, a.frozen)
	case !reflect.DeepEqual(a.waits, b.waits):
		return fmt.Errorf("waiting pairs %v, want %v", b.waits, a.waits)
	case !slices.Equal(a.weights, b.weights):
		return fmt.Errorf("labels %v, want %v", b.weights, a.weights)
	case !slices.Equal(a.counts, b.counts):
		return fmt.Errorf("labels around %v, want %v", b.counts, a.counts)
	case !maps.Equal(a.present, b.present):
		return fmt.Errorf("freshness %v, want %v", b.present, a.present)
	case a.at != b.at:
		return fmt.Errorf("ages as of %v, want %v", b.at, a.at)
	case a.active != b.active:
		return fmt.Errorf("version %d, want %d", b.active, a.active)
	}
	return nil
}
