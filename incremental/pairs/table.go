package pairs

import (
	"fmt"
	"slices"
	"time"

	"gqlstream/graphstore"
	"gqlstream/incremental/neighborhood"
	"gqlstream/ingest/event"
)

// Row is a label with a frozen or waiting pair, as stored in a checkpoint. Probabilities are in
// units of 2^-30; the lists of a pair that is not frozen are empty.
type Row struct {
	Vertex     uint32
	Waits      uint32     // predictions that are passed over before the pair may be frozen
	Version    uint32     // index of the model version
	Time       event.Time // of the prediction
	Observed   uint32     // that it rests on
	Fresh      uint32     // in units of 1/256
	Own        []uint32   // K: the prediction
	Near       []uint32   // K: mean of the neighbours' predictions; none: no neighbour had one
	Majority   uint32     // the class that most of them said, where it is kept; else 0
	Neighbours uint32     // number of terms of Next
	Next       []uint32   // K: means of the neighbours' neighbours, in units of 2^-16
	Labels     []uint32   // K: labels among the neighbours, in units of 1/256
	Walks      []uint32   // K: labels two steps away by the walks there, in units of 2^-16
}

// Rows returns the labels with frozen or waiting pairs, by vertex: with the graph, the input of
// Restore.
func (p *Pairs) Rows() []Row {
	rows := make([]Row, 0, len(p.frozen)+len(p.waits))
	for v, n := range p.waits {
		if p.frozen[v] == nil {
			rows = append(rows, Row{Vertex: uint32(v), Waits: n})
		}
	}
	for v, pair := range p.frozen {
		row := Row{
			Vertex: uint32(v), Waits: p.waits[v], Observed: pair.Observed, Version: pair.Version,
			Time: pair.Time, Fresh: pair.Fresh, Own: pair.Own,
			Neighbours: pair.Neighbours, Next: pair.Next, Labels: pair.Labels, Walks: pair.Walks,
		}
		if pair.Votes.Mass > 0 {
			for _, x := range pair.Votes.Sum {
				row.Near = append(row.Near, uint32(x))
			}
			if p.hard {
				majority, _ := pair.Votes.Majority()
				row.Majority = uint32(majority)
			}
		}
		rows = append(rows, row)
	}
	slices.SortFunc(rows, func(a, b Row) int { return int(a.Vertex) - int(b.Vertex) })
	return rows
}

// Restore returns the pairs of the graph of view from their Rows; see LetAge for half-life and
// time.
func Restore(
	classes int, hard bool, halfLife time.Duration, now event.Time, rows []Row,
	view graphstore.View,
) (*Pairs, error) {
	p := New(classes, hard)
	p.LetAge(halfLife, now)
	p.grow(view.Vertices())
	for i := range rows {
		row := &rows[i]
		if !row.fits(classes, view) {
			return nil, fmt.Errorf("the pair of vertex %d is not one of %d classes and %d vertices",
				row.Vertex, classes, view.Vertices())
		}
		if row.Waits > 0 {
			p.waits[Vertex(row.Vertex)] = row.Waits
		}
		if len(row.Own) == 0 {
			continue
		}
		p.frozen[Vertex(row.Vertex)] = &Pair{
			Version: row.Version, Time: row.Time, Observed: row.Observed, Own: row.Own,
			Votes:      p.votesOf(row),
			Neighbours: row.Neighbours, Next: row.Next, Labels: row.Labels, Walks: row.Walks,
			Fresh: row.Fresh,
		}
	}
	if active, known := view.ActiveVersion(); known {
		p.active = active
	}
	for v := range Vertex(view.Vertices()) {
		p.setPresent(view, v)
		if p.setWeight(v, p.weigh(view, v)); p.weights[v].Class == event.NoClass {
			continue
		}
		for _, u := range view.Neighbors(v) {
			p.count(u, p.weights[v], 1)
		}
	}
	return p, nil
}

// fits reports whether a row has this number of classes and a labelled vertex of view.
func (r *Row) fits(classes int, view graphstore.View) bool {
	labelled := int(r.Vertex) < view.Vertices() &&
		view.Label(Vertex(r.Vertex)).Class != event.NoClass
	if len(r.Own) == 0 {
		return labelled && r.Waits > 0 && r.Waits <= correctedWaits
	}
	for _, list := range [...][]uint32{r.Own, r.Next, r.Labels, r.Walks} {
		if len(list) != classes {
			return false
		}
	}
	return (len(r.Near) == 0 || len(r.Near) == classes) && int(r.Majority) < classes &&
		int(r.Version) < len(view.Versions()) && r.Fresh <= Whole &&
		labelled
}

// votesOf returns the votes of a row.
func (p *Pairs) votesOf(r *Row) neighborhood.Votes {
	votes := neighborhood.Votes{Sum: make([]uint64, p.classes)}
	if p.hard {
		votes.Hard = make([]uint64, p.classes)
	}
	if len(r.Near) == 0 {
		return votes
	}
	votes.Mass = 1
	for i, x := range r.Near {
		votes.Sum[i] = uint64(x)
	}
	if p.hard {
		votes.Hard[r.Majority] = 1
	}
	return votes
}
