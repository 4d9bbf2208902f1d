package main

import (
	"fmt"
	"iter"

	"gqlstream/graphstore"
	"gqlstream/incremental/diffusion"
	"gqlstream/ingest/event"
	"gqlstream/sinks"
)

// scoreTolerance bounds the certificate of scores that are computed for an export.
const scoreTolerance = 1e-3

// kernelsOf are the kernels of the communities in a checkpoint.
type kernelsOf struct {
	view   graphstore.View
	fields map[graphstore.Community][]float64 // z, of those that were kept
	config diffusion.Config                   // of those that must be computed
	dual   bool                               // one structure served all, and no kernel was kept
}

func (c *snapshotExportCmd) kernels(view graphstore.View, sections map[string][]byte) (*kernelsOf, error) {
	k := &kernelsOf{
		view: view, fields: map[graphstore.Community][]float64{},
		config: diffusion.Config{Alpha: c.Alpha, Tolerance: scoreTolerance},
	}
	_, k.dual = sections["dual.arrow"]
	if _, err := diffusion.NewField(k.config); err != nil {
		return nil, usagef("snapshot export: --alpha: %w", err)
	}
	for id := range graphstore.Community(view.Communities()) {
		name := fmt.Sprintf("field-%05d.arrow", id)
		data, ok := sections[name]
		if !ok {
			continue
		}
		columns, err := graphstore.ReadFloats(data, "z", "r")
		if err != nil {
			return nil, fmt.Errorf("section %s: %w", name, err)
		}
		k.fields[id] = columns[0].Values
	}
	return k, nil
}

// scores visits the kernel of every community that has members without a label: the
// share of its walks that end at a vertex, d z over its sum, where that is positive.
func (k *kernelsOf) scores() iter.Seq[sinks.Score] {
	return func(yield func(sinks.Score) bool) {
		for id := range graphstore.Community(k.view.Communities()) {
			masses := k.masses(id)
			name, sum := k.view.CommunityName(id), 0.0
			for _, mass := range masses {
				sum += max(mass, 0)
			}
			for v, mass := range masses {
				vertex := graphstore.Vertex(v)
				if mass <= 0 || k.view.Erased(vertex) {
					continue
				}
				if !yield(sinks.Score{Community: name, Vertex: k.view.ID(vertex).String(), Score: mass / sum}) {
					return
				}
			}
		}
	}
}

// masses returns d z by vertex: of the field in the checkpoint, of one that is solved
// where the engine was a dual, or nothing.
func (k *kernelsOf) masses(id graphstore.Community) []float64 {
	masses := make([]float64, k.view.Vertices())
	if z, ok := k.fields[id]; ok {
		for v, x := range z {
			masses[v] = (k.view.Degree(graphstore.Vertex(v)) + 1) * x
		}
		return masses
	}
	sources := k.unlabelled(id)
	if !k.dual || k.view.Retired(id) || len(sources) == 0 {
		return nil
	}
	field, err := diffusion.NewField(k.config)
	if err != nil {
		panic(err) // it was validated
	}
	field.Solve(k.view, sources, scoreTolerance)
	for v := range masses {
		masses[v] = field.Mass(graphstore.Vertex(v))
	}
	return masses
}

// unlabelled returns the sources of a community's kernel.
func (k *kernelsOf) unlabelled(id graphstore.Community) (list []diffusion.SourceChange) {
	add := func(v graphstore.Vertex, multiplicity uint32) {
		if k.view.Label(v).Class == event.NoClass {
			list = append(list, diffusion.SourceChange{V: v, Change: float64(multiplicity)})
		}
	}
	if k.view.Everyone(id) {
		for v := range graphstore.Vertex(k.view.Vertices()) {
			if !k.view.Erased(v) {
				add(v, 1)
			}
		}
		return list
	}
	vertices, multiplicities := k.view.Members(id)
	for i, v := range vertices {
		add(v, multiplicities[i])
	}
	return list
}
