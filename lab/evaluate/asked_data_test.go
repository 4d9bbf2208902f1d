//go:build data

package evaluate

import (
	"bufio"
	"compress/gzip"
	"context"
	"encoding/csv"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"gqlstream/graphstore"
	"gqlstream/incremental"
	"gqlstream/incremental/ask"
	"gqlstream/ingest/event"
	"gqlstream/quant"
	"gqlstream/quant/stats"
)

// dataRows reads a gzipped CSV file of the shared folder without its header.
func dataRows(t *testing.T, parts ...string) [][]string {
	t.Helper()
	dir := os.Getenv("GQLSTREAM_DATA")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared", "data")
	}
	f, err := os.Open(filepath.Join(append([]string{dir, ".."}, parts...)...))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(bufio.NewReader(f))
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(z).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return rows[1:]
}

// sharedGraph reads a graph with all its labels and the predictions of its case.
func sharedGraph(t *testing.T, name string) *dataset {
	t.Helper()
	var b event.Batch
	classes := 0
	for _, row := range dataRows(t, "cases", name, "predictions.csv.gz") {
		p := make([]float64, len(row)-1)
		for i := range p {
			p[i], _ = strconv.ParseFloat(row[i+1], 64)
		}
		classes = len(p)
		units := b.Units(classes)
		if err := event.Quantise(units, p); err != nil {
			t.Fatal(err)
		}
		b.Predictions = append(
			b.Predictions,
			event.Prediction{Vertex: event.ParseID(row[0]), Units: units},
		)
	}
	for _, row := range dataRows(t, "data", name, "vertices.csv.gz") {
		if class, err := strconv.Atoi(row[1]); err == nil && class >= 0 {
			b.Labels = append(
				b.Labels,
				event.Label{Vertex: event.ParseID(row[0]), Class: event.Class(class)},
			)
		}
	}
	for _, row := range dataRows(t, "data", name, "edges.csv.gz") {
		b.Edges = append(
			b.Edges,
			event.Edge{Src: event.ParseID(row[0]), Dst: event.ParseID(row[1]), Weight: 1},
		)
	}
	data, err := read(context.Background(), Config{Core: incremental.Config{Classes: classes}},
		func(_ context.Context, visit func(*event.Batch) ([]event.Refusal, error)) error {
			_, err := visit(&b)
			return err
		})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(data.release)
	return data
}

// hiddenStore is a store of the predictions, the calibration labels and one community.
func (d *dataset) hiddenStore(t *testing.T, calibration []graphstore.Vertex) *graphstore.Store {
	t.Helper()
	store, err := graphstore.New(graphstore.Config{Classes: d.classes})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Release)
	var b event.Batch
	for v := range graphstore.Vertex(d.view.Vertices()) {
		if units := d.view.Prediction(v); units != nil {
			b.Predictions = append(b.Predictions, event.Prediction{Vertex: d.ids[v], Units: units})
		}
	}
	for _, v := range calibration {
		b.Labels = append(b.Labels, event.Label{Vertex: d.ids[v], Class: d.view.Label(v).Class})
	}
	store.Apply(&b)
	return store
}

// score counts how the intervals of one graph, protocol and number of labels fare, by community:
// the draws of one community are not independent.
type score struct {
	held                    []float64 // share of the intervals of a community that hold the truth
	width, promised, labels float64
}

// mean returns the share of all intervals that hold the truth, and its standard error, both in
// percent.
func (s *score) mean() (percent, deviation float64) {
	n := float64(len(s.held))
	for _, x := range s.held {
		percent += 100 * x / n
	}
	for _, x := range s.held {
		deviation += (100*x - percent) * (100*x - percent) / (n * (n - 1))
	}
	return percent, math.Sqrt(deviation)
}

// audited labels members of a community that was drawn and returns the estimate from that.
func (d *dataset) audited(
	t *testing.T, view graphstore.View, b *bag, pi map[event.ID]float64,
) quant.Estimate {
	t.Helper()
	k := d.classes
	mean, sums := make([]float64, k), stats.NewAudit(k)
	for _, m := range b.members {
		v, _ := view.Lookup(d.ids[m.vertex])
		p := make([]float64, k)
		for i, unit := range view.Prediction(v) {
			p[i] = float64(unit) / event.One
			mean[i] += float64(m.multiplicity) / float64(b.size) * p[i]
		}
		if drawn := pi[d.ids[m.vertex]]; drawn > 0 {
			class := int(d.view.Label(m.vertex).Class)
			y, yp := make([]float64, k), make([]float64, k)
			y[class] = 1
			yp[class] = p[class]
			sums.Labels++
			sums.Expect(y, p, yp, float64(m.multiplicity), drawn, 1)
		}
	}
	var e quant.Estimate
	if err := new(quant.Solver).Estimate(&e, sums.Of(float64(b.size), mean),
		quant.Options{Method: quant.Audits}); err != nil {
		t.Fatal(err)
	}
	return e
}

// The 90 % intervals from members that ask draws must hold the truth in 87 to 93 % for
// every number of labels, and with 50 and 200 labels in every cell of graph and shift,
// within four of its standard errors. Ten labels seldom include a rare class. The promised
// width must be within 20 % of the widest interval, except for ICWSM's hubs and neighbours,
// who agree more often than the labels elsewhere suggest.
func TestDesignBasedIntervalsHoldTheTruth(t *testing.T) {
	const draws, splits = 2, 1
	all, cells := map[int]float64{}, map[int]float64{}
	for _, name := range []string{"coraml", "citeseer", "icwsm_political", "musae_twitch"} {
		d := sharedGraph(t, name)
		scores := map[string]*score{}
		for split := range splits {
			config := Config{
				Core: incremental.Config{
					Classes:   d.classes,
					Estimates: []quant.Options{{Method: quant.Auto}},
				},
				Protocols: []string{
					pps,
					cov,
					byDegree,
					bfs,
				}, PerClass: 70 / d.classes, Size: 600, MembersMin: 11, Share: 0.15,
				Seed: askedSeed(t) + uint64(split),
			}.WithDefaults()
			bags, calibration, err := d.draw(config, split)
			if err != nil {
				t.Fatal(err)
			}
			if err := d.estimate(t.Context(), config, bags, calibration, func(int) {}); err != nil {
				t.Fatal(err)
			}
			store := d.hiddenStore(t, calibration)
			for at, b := range bags {
				var batch event.Batch
				for _, m := range b.members {
					batch.Members = append(
						batch.Members,
						event.Member{
							Community:    b.name,
							Vertex:       d.ids[m.vertex],
							Multiplicity: m.multiplicity,
						},
					)
				}
				store.Apply(&batch)
				for _, labels := range []int{10, 50, 200} {
					if len(b.members) >= 2*labels {
						key := fmt.Sprintf("%-16s %3d %-7s", name, labels, b.protocol)
						if scores[key] == nil {
							scores[key] = &score{labels: float64(labels)}
						}
						d.scoreDraws(t, store, b, labels, draws, uint64(1000*at), scores[key])
					}
				}
			}
		}
		for _, key := range slices.Sorted(maps.Keys(scores)) {
			s := scores[key]
			held, deviation := s.mean()
			n := float64(draws * len(s.held))
			ratio := s.promised / s.width
			t.Logf(
				"%s %3d communities: %5.1f ± %.1f %%, half-width %.3f, promised/obtained %.2f", key,
				len(s.held), held, deviation, s.width/n, ratio,
			)
			labels := int(s.labels)
			all[labels], cells[labels] = all[labels]+held, cells[labels]+1
			low, high := 87-4*deviation, 93+4*deviation
			if labels == 10 {
				low, high = 80, 98
			}
			if held < low || held > high {
				t.Errorf("%s: %.1f ± %.1f %% of the intervals hold the truth", key, held, deviation)
			}
			if labels >= 50 && (ratio < 0.8 || ratio > 1.2) && name != "icwsm_political" {
				t.Errorf("%s: the promised width is %.2f of that obtained", key, ratio)
			}
		}
	}
	for labels, sum := range all {
		mean := sum / cells[labels]
		t.Logf("%d labels: %.1f %%", labels, mean)
		if mean < 87 || mean > 93 {
			t.Errorf("%d labels: %.1f %% of the intervals hold the truth", labels, mean)
		}
	}
}

// askedSeed is GQLSTREAM_SEED, or 11.
func askedSeed(t *testing.T) uint64 {
	seed := uint64(11)
	if text := os.Getenv("GQLSTREAM_SEED"); text != "" {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		seed = n
	}
	t.Logf("GQLSTREAM_SEED=%d", seed)
	return seed
}

// scoreDraws draws labels of a community several times, each time new ones, and counts.
func (d *dataset) scoreDraws(
	t *testing.T, store *graphstore.Store, b *bag, labels, draws int, seed uint64, s *score,
) {
	t.Helper()
	held := 0.0
	for draw := range uint64(draws) {
		answer, err := ask.Ask(store.View(), event.ClassSet{Count: d.classes}, ask.Question{
			Communities: []string{b.name}, Count: labels, Seed: seed + draw,
			Shares: map[string][]float64{b.name: b.estimates[0].Prevalence},
		})
		if err != nil {
			t.Fatal(err)
		}
		pi := map[event.ID]float64{}
		for _, a := range answer.Drawn {
			pi[a.ID] = a.Pi
		}
		e := d.audited(t, store.View(), b, pi)
		widest := 0.0
		for i, truth := range b.truth {
			widest = max(widest, (e.High[i]-e.Low[i])/2)
			if e.Low[i]-1e-12 <= truth && truth <= e.High[i]+1e-12 {
				held += 1 / float64(d.classes*draws)
			}
		}
		s.width += widest
		s.promised += answer.Offers[0].HalfWidth
	}
	s.held = append(s.held, held)
}
