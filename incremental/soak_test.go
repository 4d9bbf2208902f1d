package incremental

import (
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"testing"
	"time"

	"gqlstream/graphstore"
	"gqlstream/ingest/event"
	"gqlstream/lab/campaign"
)

// The graph of the soak: it changes all the time and stays as large as it is.
const (
	soakVertices = 10_000
	soakSlots    = 5 // edges of a vertex as their source
	soakStep     = 4096
	soakClasses  = 2
	soakGroups   = 2
)

// soakLog makes steps of events that replace earlier ones.
type soakLog struct {
	rand   *rand.Rand
	offset [soakVertices * soakSlots]int // of the other end; 0: no edge yet
	slot   int
	now    event.Time
	next   event.Position
	units  []uint32
}

// fill makes the next step of about soakStep events: half of them edges.
func (l *soakLog) fill(b *event.Batch) {
	b.Reset()
	l.units = l.units[:0]
	b.First, l.now = l.next, l.now+event.Time(100*time.Millisecond)
	for range soakStep / 4 {
		l.replaceEdge(b)
	}
	for range soakStep / 4 {
		l.predict(b)
	}
	for range soakStep / 8 {
		b.Labels = append(b.Labels, event.Label{
			Vertex: l.id(
				l.rand.IntN(soakVertices),
			), Class: event.Class(l.rand.IntN(soakClasses+8)%(soakClasses+1)) - 1,
			Role: event.Role(l.rand.IntN(2)), Time: l.now, Position: l.next,
		})
	}
	for range soakStep / 8 {
		v := l.rand.IntN(soakVertices)
		b.Members = append(b.Members, event.Member{
			Community: "group-" + strconv.Itoa(v%soakGroups), Vertex: l.id(v),
			Multiplicity: l.rand.Uint32N(2), Time: l.now, Position: l.next,
		})
	}
	l.next += soakStep
	b.Last, b.Time, b.Emit = l.next-1, l.now, l.now%event.Time(time.Second) == 0
}

func (l *soakLog) id(v int) event.ID { return event.NumberID(uint64(v % soakVertices)) }

// replaceEdge takes an edge away and puts another one in its place. No two slots
// can hold the same edge.
func (l *soakLog) replaceEdge(b *event.Batch) {
	v := l.slot / soakSlots
	e := event.Edge{Src: l.id(v), Weight: 1, Time: l.now, Position: l.next}
	if before := l.offset[l.slot]; before > 0 {
		e.Dst, e.Remove = l.id(v+before), true
		b.Edges = append(b.Edges, e)
	}
	const width = soakVertices / 2 / soakSlots
	now := 1 + l.slot%soakSlots*width + l.rand.IntN(width-1)
	e.Dst, e.Remove = l.id(v+now), false
	b.Edges = append(b.Edges, e)
	l.offset[l.slot] = now
	l.slot = (l.slot + 1) % len(l.offset)
}

func (l *soakLog) predict(b *event.Batch) {
	p := l.rand.Uint32N(event.One)
	l.units = append(l.units, p, event.One-p)
	b.Predictions = append(b.Predictions, event.Prediction{
		Vertex: l.id(l.rand.IntN(soakVertices)), Units: l.units[len(l.units)-2:],
		Version: "m", Time: l.now, Position: l.next,
	})
}

// On a graph of constant size the memory, the goroutines and the files of a core
// that runs at full speed, emits every second of the log and saves its state must not grow.
// GQLSTREAM_SOAK sets the events (make soak: 10^7).
func TestSoakDoesNotGrow(t *testing.T) {
	const usual = 600_000
	events, growthMax := campaign.Size(t, "GQLSTREAM_SOAK", usual), 1.02
	if events < 5*usual {
		growthMax = 1.10 // the heap settles slowly
	}
	config := Config{
		Classes:     soakClasses,
		Communities: []graphstore.Rule{{Name: "all", Kind: graphstore.Everyone}},
	}
	config.CompactEvery = 5 * time.Second
	core := newCore(t, config)
	log := &soakLog{rand: rand.New(rand.NewPCG(1, 17)), next: 1, now: event.Time(time.Hour)}
	var batch event.Batch
	var first, worst, last soakMark // each after a save
	begun, saves, estimates := time.Now(), 0, 0
	for step := 0; step*soakStep < events; step++ {
		log.fill(&batch)
		result := core.Step(&batch)
		estimates += len(result.Estimates)
		if !result.Compacted {
			continue
		}
		if _, err := core.Sections(); err != nil {
			t.Fatal(err)
		}
		saves++
		if step*soakStep < max(events/10, 200_000) {
			continue // the graph fills, and every buffer finds its size
		}
		now := markSoak()
		if first.heap == 0 {
			first = now
		}
		last = now
		worst = soakMark{
			max(worst.heap, now.heap),
			max(worst.goroutines, now.goroutines),
			max(worst.files, now.files),
		}
	}
	t.Logf(
		"%d events in %v, %d estimates, %d states saved, %d vertices, %d edges; heap %d KiB at "+
			"a tenth, at most "+
			"%d, %d at the end; goroutines %d, %d; files %d, %d",
		events,
		time.Since(begun).Round(time.Millisecond),
		estimates,
		saves,
		core.View().Vertices(),
		core.View().Edges(),
		first.heap>>10,
		worst.heap>>10,
		last.heap>>10,
		first.goroutines,
		worst.goroutines,
		first.files,
		worst.files,
	)
	if float64(worst.heap) > growthMax*float64(first.heap) {
		t.Errorf("the heap grew from %d to %d bytes", first.heap, worst.heap)
	}
	if worst.goroutines > first.goroutines || worst.files > first.files {
		t.Errorf("goroutines grew from %d to %d, files from %d to %d",
			first.goroutines, worst.goroutines, first.files, worst.files)
	}
}

// soakMark has the figures that must not grow.
type soakMark struct {
	heap              uint64 // live
	goroutines, files int
}

func markSoak() soakMark {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	files, _ := os.ReadDir("/proc/self/fd") // empty where there is no such thing
	return soakMark{m.HeapAlloc, runtime.NumGoroutine(), len(files)}
}
