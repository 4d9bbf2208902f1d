package incremental

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"gqlstream/incremental/classifier"
	"gqlstream/ingest/event"
	"gqlstream/ingest/event/eventtest"
)

// configureAll configures a community of every kind.
const configureAll = `{"communities":[
	{"name":"whole","everyone":true}, {"name":"french","where":{"language":"fr"}},
	{"name":"not german","rule":"language != \"de\""}, {"name":"near","ego":{"root":"v1","hops":2,"members_max":20}},
	{"name":"near a number","ego":{"root":4,"hops":1}}]}`

// A configure event must replace the configured communities at its position, leave
// those of member events alone, and give what a core that was configured so from
// the start gives; also across a restart.
func TestConfigureReplacesCommunities(t *testing.T) {
	for seed := range uint64(20) {
		stream := eventtest.New(seed, eventtest.Config{Vertices: 30})
		config := allMethods(stream.Config.Classes)
		config.Classifier = []string{"", classifier.EnqName, classifier.DiffusionName}[seed%3]
		core := newCore(t, config)
		straight := config
		var err error
		if straight.Communities, err = parseCommunities(json.RawMessage(configureAll)); err != nil {
			t.Fatal(err)
		}
		twin := newCore(t, straight)
		for i := range 12 {
			batch := stream.Next()
			if i == 6 {
				batch.Checkpoint = true
				batch.Controls = []event.Control{{Op: event.Configure, Config: json.RawMessage(configureAll)}}
			}
			batch.Emit = batch.Emit || i == 11
			result := core.Step(batch)
			if len(result.Refused) > 0 {
				t.Fatalf("seed %d: refused %v", seed, result.Refused)
			}
			if i == 6 {
				again := restored(t, seed, core, config)
				core.Close()
				core = again
			}
			want := twin.Step(batch)
			if i != 11 {
				continue
			}
			got, expected := map[string][]float64{}, map[string][]float64{}
			for _, e := range result.Estimates {
				got[e.Community+"/"+e.Method] = e.NEff
			}
			for _, e := range want.Estimates {
				expected[e.Community+"/"+e.Method] = e.NEff
			}
			for key := range expected {
				if got[key] == nil {
					t.Errorf("seed %d: no estimate of %s among %v", seed, key, slices.Sorted(maps.Keys(got)))
				}
			}
			if got["german/pcc"] != nil || got["all/pcc"] != nil {
				t.Errorf("seed %d: a retired community was estimated", seed)
			}
			if err := checkCore(core); err != nil {
				t.Errorf("seed %d: %v", seed, err)
			}
		}
		core.Close()
		twin.Close()
	}
}

// A configure event that cannot be carried out must be refused with its reason
// and change nothing.
func TestBadConfigureIsRefused(t *testing.T) {
	for _, config := range []string{
		`{}`, `{"communities":[{}]}`, `{"alpha":0.2}`, `{"communities":[{"name":"a","everyone":true,"where":{"x":1}}]}`,
		`{"communities":[{"name":"a"},{"name":"a"}]}`, `{"communities":[{"name":"a","where":{"x":[1]}}]}`, `{"communities":7}`,
		`{"communities":[{"name":"a","rule":"age >="}]}`, `{"communities":[{"name":"a","rule":"now() > age"}]}`,
		`{"communities":[{"name":"a","ego":{"root":"x"}}]}`, `{"communities":[{"name":"a","ego":{"root":-1,"hops":1}}]}`,
		`{"communities":[{"name":"a","ego":{"root":"x","hops":1},"everyone":true}]}`, `{"communities":[{"name":"a","ego":{"hops":1}}]}`,
	} {
		core := newCore(t, allMethods(2))
		before := core.View().Communities()
		result := core.Step(&event.Batch{First: 1, Last: 1, Controls: []event.Control{
			{Op: event.Configure, Config: json.RawMessage(config), Position: 1},
		}})
		if len(result.Refused) != 1 || result.Refused[0].Reason != event.BadConfig || result.Refused[0].Position != 1 {
			t.Errorf("%s: refused %v", config, result.Refused)
		}
		if got := core.View().Communities(); got != before {
			t.Errorf("%s: %d communities, were %d", config, got, before)
		}
		core.Close()
	}
}
