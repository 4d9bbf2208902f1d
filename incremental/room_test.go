package incremental

import (
	"encoding/json"
	"fmt"
	"testing"

	"gqlstream/ingest/event"
)

// Producers who make communities without end must reach the limit, with a reason for each
// refused event. The communities of others must be estimated as before. After the members
// of the flood have left and the communities are configured again, new communities must be
// taken.
func TestCommunitiesWithoutEndAreRefused(t *testing.T) {
	const most, flood = 50, 1000
	config := Config{Classes: 2, Limits: event.Limits{Communities: most}}
	core := newCore(t, config)
	defer func() { core.Close() }()
	predictions := func(b *event.Batch) {
		for v := range uint64(20) {
			units := b.Units(2)
			units[v%2] = event.One
			b.Predictions = append(b.Predictions,
				event.Prediction{Vertex: event.NumberID(v), Units: units})
		}
	}
	join := func(b *event.Batch, community string, v uint64, times uint32) {
		b.Members = append(b.Members, event.Member{
			Community: community, Vertex: event.NumberID(v), Multiplicity: times,
		})
	}
	step := func(emit bool, fill func(b *event.Batch)) Result {
		b := event.Batch{Emit: emit}
		fill(&b)
		b.First, b.Last = core.Position()+1, core.Position()+1
		return core.Step(&b)
	}
	step(true, func(b *event.Batch) {
		predictions(b)
		for v := range uint64(20) {
			join(b, "honest", v, 1)
		}
	})
	refused := step(true, func(b *event.Batch) {
		for i := range flood {
			join(b, fmt.Sprint("flood", i), uint64(i%20), 1)
		}
	}).Refused
	if len(refused) != flood-most+1 {
		t.Errorf(
			"%d of %d events are refused, %d communities have room", len(refused), flood, most-1,
		)
	}
	for _, r := range refused {
		if r.Reason != event.LimitExceeded || r.Detail != "communities" {
			t.Fatalf("refused because of %s: %s", r.Reason, r.Detail)
		}
	}
	honest := func(result Result) bool {
		for _, e := range result.Estimates {
			if e.Community == "honest" && len(e.Prevalence) > 0 {
				return true
			}
		}
		return false
	}
	if !honest(step(true, func(b *event.Batch) {
		units := b.Units(2)
		units[1] = event.One
		b.Predictions = append(b.Predictions,
			event.Prediction{Vertex: event.NumberID(0), Units: units})
		join(b, "honest", 1, 2)
	})) {
		t.Error("the community of others is not estimated any more")
	}
	late := func(b *event.Batch) { join(b, "late", 3, 1) }
	if n := len(step(true, late).Refused); n != 1 {
		t.Errorf("one community too many: %d events are refused", n)
	}
	step(false, func(b *event.Batch) {
		for i := range flood {
			join(b, fmt.Sprint("flood", i), uint64(i%20), 0)
		}
	})
	step(true, func(b *event.Batch) {
		b.Controls = []event.Control{{
			Op: event.Configure, Config: json.RawMessage(`{"communities": [{"name": "everyone", ` +
				`"everyone": true}]}`),
		}}
	})
	if err := checkCore(core); err != nil {
		t.Error(err)
	}
	again := restored(t, 1, core, config)
	core.Close()
	core = again
	if refused := step(true, late).Refused; len(refused) != 0 {
		t.Errorf("after the flood has left: %+v", refused)
	}
	if n := core.View().Communities(); n != 3 {
		t.Errorf("%d communities, want honest, everyone and late", n)
	}
}
