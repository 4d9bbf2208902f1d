package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"
)

// Config says how large the measures are. The figures in the design are for the
// sizes of SizesDefault.
type Config struct {
	Vertices int    // of the graph, at least VerticesMin
	Edges    int    // undirected, at most a tenth of all pairs
	Seed     uint64 // of the graph and of everything drawn
	Quick    bool   // fewer repetitions and events

	Dir      string    // for streams and checkpoints; a temporary one is made in it; "" is the system's
	Progress io.Writer // what is going on; nil is nowhere
}

// Sizes of a full and of a quick run.
const (
	VerticesDefault = 168_000
	EdgesDefault    = 6_800_000
	VerticesQuick   = 10_000
	EdgesQuick      = 200_000
	VerticesMin     = 100
)

// Validate reports every violation at once.
func (c Config) Validate() error {
	var errs []error
	if c.Vertices < VerticesMin || c.Vertices > 1<<28 {
		errs = append(errs, fmt.Errorf("bench: %d vertices, want %d to %d", c.Vertices, VerticesMin, 1<<28))
	}
	if c.Edges < c.Vertices || float64(c.Edges) > float64(c.Vertices)*float64(c.Vertices)/20 {
		errs = append(errs, fmt.Errorf("bench: %d edges, want at least one a vertex and at most a tenth of all pairs", c.Edges))
	}
	return errors.Join(errs...)
}

// Row is one figure.
type Row struct {
	Name      string  `json:"name"`
	Value     float64 `json:"value"`
	Unit      string  `json:"unit"`
	Goal      string  `json:"goal"`      // such as "<= 10"; empty when there is none
	Met       *bool   `json:"met"`       // null when there is no goal, or the run is too small for it
	Reference string  `json:"reference"` // what is known of others, or of the other side of a ratio
	Note      string  `json:"note,omitempty"`
}

// atMost returns the row with the goal of not exceeding most.
func (r Row) atMost(most float64) Row { return r.goal("<=", most, r.Value <= most) }

// atLeast returns the row with the goal of reaching least.
func (r Row) atLeast(least float64) Row { return r.goal(">=", least, r.Value >= least) }

func (r Row) goal(sign string, bound float64, met bool) Row {
	r.Goal, r.Met = fmt.Sprintf("%s %.10g", sign, bound), &met
	return r
}

// atSize takes the verdict back when the graph is smaller than the one that the
// goal is for, and on which it depends.
func (r Row) atSize(w *World) Row {
	if w.Edges < EdgesDefault || w.Vertices < VerticesDefault {
		r.Met = nil
	}
	return r
}

// Measure makes some rows. The name of each is that of the measure, or
// begins with it and a slash.
type Measure struct {
	Name string
	What string // in a few words
	Run  func(ctx context.Context, w *World) ([]Row, error)
}

// Measures returns those of this package in the order in which they should run:
// the last one spoils the graph for the others.
func Measures() []Measure {
	return append(liveMeasures(), []Measure{
		{"memory", "bytes of the store", measureMemory},
		{"update", "one field kept current", measureUpdate},
		{"recompute", "keeping current against computing anew", measureRecompute},
		{"ingest", "Arrow batches from a durable stream into the core", measureIngest},
		{"json", "single JSON events from a durable stream into the core", measureJSON},
		{"restart", "from a checkpoint on disk to a core that goes on", measureRestart},
		{"certificate", "true error against certificate after a long stream", measureCertificate},
	}...)
}

// World is shared by the measures: the configuration and the graph.
type World struct {
	Config
	dir   string
	graph *graph
}

// Run runs the measures one after the other and hands each row to report. A
// measure that fails does not stop the others; the error tells of all that did.
func Run(ctx context.Context, c Config, measures []Measure, report func(Row)) (err error) {
	if err := c.Validate(); err != nil {
		return err
	}
	c.Progress = cmp.Or(c.Progress, io.Discard)
	dir, err := os.MkdirTemp(c.Dir, "gqlstream-bench-")
	if err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	w := &World{Config: c, dir: dir}
	defer func() {
		w.release()
		err = errors.Join(err, os.RemoveAll(dir))
	}()
	var errs []error
	for i, m := range measures {
		if err := ctx.Err(); err != nil {
			return errors.Join(append(errs, err)...)
		}
		begun := time.Now()
		w.say("[%d/%d] %s: %s", i+1, len(measures), m.Name, m.What)
		rows, err := m.Run(ctx, w)
		if err != nil {
			errs = append(errs, fmt.Errorf("bench: %s: %w", m.Name, err))
			w.say("        failed: %v", err)
			continue
		}
		for _, r := range rows {
			report(r)
		}
		w.say("        %.1f s", time.Since(begun).Seconds())
	}
	return errors.Join(errs...)
}

// say writes a line of progress.
func (w *World) say(format string, args ...any) { fmt.Fprintf(w.Progress, format+"\n", args...) }

// tempDir returns a new directory that is gone after the run.
func (w *World) tempDir() (string, error) { return os.MkdirTemp(w.dir, "") }

// pick returns one of two sizes.
func (w *World) pick(full, quick int) int {
	if w.Quick {
		return quick
	}
	return full
}

// median returns the middle of the values, which it sorts.
func median(values []float64) float64 {
	slices.Sort(values)
	n := len(values)
	return (values[(n-1)/2] + values[n/2]) / 2
}
