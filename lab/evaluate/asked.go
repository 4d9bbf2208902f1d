package evaluate

import (
	"fmt"
	"slices"
	"strconv"

	"gqlstream/incremental"
	"gqlstream/incremental/ask"
	"gqlstream/ingest/event"
	"gqlstream/quant"
)

// afterAsk ends the names of auto and audit where they stand for the estimates after the members
// that package ask draws were labelled.
const afterAsk = "+ask"

// simulateAsking labels members of each community, one community at a time, and records the
// estimates after each.
func (d *dataset) simulateAsking(core *incremental.Core, bags []*bag, config Config) error {
	var labels []event.Label
	step := func(emit bool) incremental.Result {
		position := core.Position() + 1
		return core.Step(&event.Batch{First: position, Last: position, Emit: emit, Labels: labels})
	}
	for i, b := range bags {
		for at := range labels { // of the community before, which were drawn elsewhere
			labels[at] = event.Label{Vertex: labels[at].Vertex, Class: event.NoClass}
		}
		step(false)
		name := strconv.Itoa(i)
		question := ask.Question{
			Communities: []string{
				name,
			}, Count: min(config.Ask, len(b.members)), Seed: config.Seed, Position: core.Position(),
		}
		if at := slices.IndexFunc(b.estimates,
			func(e quant.Estimate) bool { return e.Method == string(quant.Auto) }); at >= 0 {
			question.Shares = map[string][]float64{name: b.estimates[at].Prevalence}
		}
		answer, err := ask.Ask(core.View(), event.ClassSet{Count: d.classes}, question)
		if err != nil {
			return err
		}
		labels = labels[:0]
		for _, a := range answer.Drawn {
			v, _ := d.view.Lookup(a.ID)
			labels = append(labels, event.Label{
				Vertex: a.ID,
				Class:  d.view.Label(v).Class,
				Role:   event.Audit,
				Pi:     max(uint32(a.Pi*event.One), event.PiMin),
			})
		}
		result := step(true)
		if len(result.Refused) > 0 {
			return fmt.Errorf("%s: %s", result.Refused[0].Reason, result.Refused[0].Detail)
		}
		for _, e := range result.Estimates {
			if e.Community == name &&
				(e.Method == string(quant.Auto) || e.Method == string(quant.Audits)) {
				e.Method, e.Community = e.Method+afterAsk, b.name
				b.estimates = append(b.estimates, e)
			}
		}
	}
	return nil
}
