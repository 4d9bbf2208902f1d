package evaluate

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"

	"gqlstream/ask"
	"gqlstream/incremental"
	"gqlstream/ingest/event"
	"gqlstream/quant"
)

// With Config.Ask a report also has the estimates after members of the community were drawn and
// labelled. They stand under the name of their method and one of these.
const (
	afterAsk     = "+ask"     // of auto and audit: those that package ask draws
	afterUniform = "+uniform" // of both: as many, each as likely as any other
)

// simulateAsking labels members of each community, one community at a time, and keeps what is
// estimated then.
func (d *dataset) simulateAsking(core *incremental.Core, bags []*bag, config Config) error {
	var labelled []event.ID
	for i, b := range bags {
		name := strconv.Itoa(i)
		question := ask.Question{
			Communities: []string{name}, Count: min(config.Ask, len(b.members)), Seed: config.Seed, Position: core.Position(),
		}
		for _, e := range b.estimates {
			if e.Method == string(quant.Auto) {
				question.Shares = map[string][]float64{name: e.Prevalence}
			}
		}
		// Those of the community before are withdrawn first: they were drawn elsewhere.
		position := core.Position() + 1
		batch := &event.Batch{First: position, Last: position}
		for _, id := range labelled {
			batch.Labels = append(batch.Labels, event.Label{Vertex: id, Class: event.NoClass, Position: position})
		}
		core.Step(batch)
		answer, err := ask.Ask(core.View(), event.ClassSet{Count: d.classes}, question)
		if err != nil {
			return err
		}
		asked := map[event.ID]float64{}
		for _, a := range answer.Drawn {
			asked[a.ID] = a.Pi
		}
		if err := d.label(core, b, name, asked, afterAsk); err != nil {
			return err
		}
		uniform := d.uniformly(b, question.Count, rand.New(rand.NewPCG(config.Seed, uint64(i))))
		for id := range asked {
			if _, both := uniform[id]; !both {
				uniform[id] = 0 // to be withdrawn
			}
		}
		if err := d.label(core, b, name, uniform, afterUniform); err != nil {
			return err
		}
		labelled = slices.AppendSeq(labelled[:0], maps.Keys(uniform))
	}
	return nil
}

// uniformly draws n vertices of a community with equal probability.
func (d *dataset) uniformly(b *bag, n int, r *rand.Rand) map[event.ID]float64 {
	drawn := map[event.ID]float64{}
	for _, at := range r.Perm(len(b.members))[:n] {
		drawn[d.ids[b.members[at].vertex]] = float64(n) / float64(len(b.members))
	}
	return drawn
}

// label gives vertices their class as audit labels, or none where pi is 0, and keeps the
// estimates of the community.
func (d *dataset) label(core *incremental.Core, b *bag, name string, pi map[event.ID]float64, after string) error {
	position := core.Position() + 1
	batch := &event.Batch{First: position, Last: position, Emit: true}
	for _, m := range b.members {
		id := d.ids[m.vertex]
		p, drawn := pi[id]
		if !drawn {
			continue
		}
		l := event.Label{Vertex: id, Class: event.NoClass, Position: position}
		if p > 0 {
			l.Class, l.Role, l.Pi = d.view.Label(m.vertex).Class, event.Audit, max(uint32(p*event.One), event.PiMin)
		}
		batch.Labels = append(batch.Labels, l)
	}
	result := core.Step(batch)
	if len(result.Refused) > 0 {
		return fmt.Errorf("%s: %s", result.Refused[0].Reason, result.Refused[0].Detail)
	}
	for _, e := range result.Estimates {
		if e.Community != name || e.Method != string(quant.Auto) && e.Method != string(quant.Audits) {
			continue
		}
		e.Method, e.Community = e.Method+after, b.name
		b.estimates = append(b.estimates, e)
	}
	return nil
}
