package incremental

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"gqlstream/incremental/classifier"
	"gqlstream/ingest/event"
	"gqlstream/ingest/event/eventtest"
	"gqlstream/quant/stats"
)

// configureAll configures a community of every kind.
const configureAll = `{"communities":[
	{"name":"whole","everyone":true}, {"name":"french","where":{"language":"fr"}},
	{"name":"not german","rule":"language != \"de\""},
	{"name":"near","ego":{"root":"v1","hops":2,"members_max":20}},
	{"name":"near a number","ego":{"root":4,"hops":1}}]}`

// Events that are refused next to a configure event must stay refused. A refused configure
// event must keep its place in its message and be ready to be published again.
func TestRefusalsInTheStepOfAConfigureEvent(t *testing.T) {
	core := newCore(t, allMethods(2))
	defer core.Close()
	configure := func(index uint32, config string) event.Control {
		return event.Control{
			Position: 7,
			Index:    index,
			Op:       event.Configure,
			Config:   json.RawMessage(config),
		}
	}
	all, bad := `{"communities":[{"name":"all","everyone":true}]}`, `{"communities":[{"name":""}]}`
	core.Step(&event.Batch{Last: 5, Controls: []event.Control{configure(0, all)}})
	result := core.Step(&event.Batch{
		Last: 7, Members: []event.Member{{
			Position: 6, Community: "all", Vertex: event.NumberID(1),
			Multiplicity: 1,
		}},
		Controls: []event.Control{configure(0, bad), configure(1, all), configure(2, bad)},
	})
	var got []string
	for _, r := range result.Refused {
		got = append(got, fmt.Sprintf("%d/%d %s %s", r.Position, r.Index, r.Reason, r.Original))
	}
	again := `bad-config {"op":"configure","config":` + bad + `}`
	want := []string{`6/0 bad-value {"community":"all","vertex":1}`, "7/0 " + again, "7/2 " + again}
	if !slices.Equal(got, want) {
		t.Errorf("refused %q, want %q", got, want)
	}
}

// A configure event must replace the configured communities at its position and leave those
// of member events alone. The records must be those of a core that had this configuration
// from the start, also across a restart.
func TestConfigureReplacesCommunities(t *testing.T) {
	for seed := range uint64(20) {
		stream := eventtest.New(seed, eventtest.Config{Vertices: 30})
		config := allMethods(stream.Config.Classes)
		config.Classifier = []string{"", "", classifier.Name}[seed%3]
		core := newCore(t, config)
		straight := config
		var err error
		if straight.Communities, _,
			err = parseCommunities(json.RawMessage(configureAll)); err != nil {
			t.Fatal(err)
		}
		twin := newCore(t, straight)
		for i := range 12 {
			batch := stream.Next()
			if i == 6 {
				batch.Checkpoint = true
				batch.Controls = []event.Control{
					{Op: event.Configure, Config: json.RawMessage(configureAll)},
				}
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
					t.Errorf(
						"seed %d: no estimate of %s among %v", seed, key,
						slices.Sorted(maps.Keys(got)),
					)
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
		`{}`, `{"communities":[{}]}`, `{"alpha":0.2}`,
		`{"communities":[{"name":"a","everyone":true,"where":{"x":1}}]}`,
		`{"communities":[{"name":"a"},{"name":"a"}]}`,
		`{"communities":[{"name":"a","where":{"x":[1]}}]}`, `{"communities":7}`,
		`{"communities":[{"name":"a","rule":"age >="}]}`,
		`{"communities":[{"name":"a","rule":"now() > age"}]}`,
		`{"communities":[{"name":"a","ego":{"root":"x"}}]}`,
		`{"communities":[{"name":"a","ego":{"root":-1,"hops":1}}]}`,
		`{"communities":[{"name":"a","ego":{"root":"x","hops":1},"everyone":true}]}`,
		`{"communities":[{"name":"a","ego":{"hops":1}}]}`,
	} {
		core := newCore(t, allMethods(2))
		before := core.View().Communities()
		result := core.Step(&event.Batch{First: 1, Last: 1, Controls: []event.Control{
			{Op: event.Configure, Config: json.RawMessage(config), Position: 1},
		}})
		if len(result.Refused) != 1 || result.Refused[0].Reason != event.BadConfig ||
			result.Refused[0].Position != 1 {
			t.Errorf("%s: refused %v", config, result.Refused)
		}
		if got := core.View().Communities(); got != before {
			t.Errorf("%s: %d communities, were %d", config, got, before)
		}
		core.Close()
	}
}

// If the configuration forbids it, a well-formed configure event must be refused too, with
// the key that forbids it, and other control events of the message must work.
func TestConfigureCanBeDenied(t *testing.T) {
	config := allMethods(2)
	config.DenyConfigure = true
	core := newCore(t, config)
	defer core.Close()
	before := core.View().Communities()
	result := core.Step(&event.Batch{First: 1, Last: 1, Controls: []event.Control{
		{
			Op:       event.Tick,
			Position: 1,
		}, {Op: event.Configure, Config: json.RawMessage(configureAll), Position: 1},
	}})
	if len(result.Refused) != 1 || result.Refused[0].Reason != event.BadConfig ||
		!strings.Contains(result.Refused[0].Detail, "control.configure") {
		t.Errorf("refused %v", result.Refused)
	}
	if got := core.View().Communities(); got != before {
		t.Errorf("%d communities, were %d", got, before)
	}
	if config.Digest() == allMethods(2).Digest() {
		t.Error("the digest does not say so, though it decides results")
	}
}

// A declaration of how a community was selected must decide gamma, and one that is none
// must be refused, in the log too.
func TestSelectionIsDeclared(t *testing.T) {
	for selection, want := range map[stats.Selection]float64{
		stats.ByClass: 0.95, stats.ByPlace: 0,
		stats.ByAttribute: 0,
	} {
		core := newCore(
			t,
			Config{Classes: 2, SelectedBy: map[string]stats.Selection{"c1": selection}},
		)
		defer core.Close()
		for _, e := range core.Step(crowd(1, 2)).Estimates {
			if e.Community == "c1" && e.Gamma != want {
				t.Errorf("selected by %s: gamma %v, want %v", selection, e.Gamma, want)
			}
		}
	}
	if err := (Config{Classes: 2, SelectedBy: map[string]stats.Selection{"c1": "chance"}}).
		Validate(); err == nil {
		t.Error("a community is selected by chance")
	}
	if _, _, err := parseCommunities([]byte(`{"communities": [{"name": "a", "everyone": true, ` +
		`"selected_by": "chance"}]}`)); err == nil {
		t.Error("a community of the log is selected by chance")
	}
}

// A selection that a configure event declares must replace that of the configuration, and
// survive a restart.
func TestSelectionIsDeclaredInTheLog(t *testing.T) {
	config := Config{Classes: 2, SelectedBy: map[string]stats.Selection{"c1": stats.ByClass}}
	core := newCore(t, config)
	defer core.Close()
	core.Step(crowd(1, 2))
	core.Step(&event.Batch{First: 2, Last: 2, Checkpoint: true, Controls: []event.Control{{
		Op: event.Configure, Position: 2,
		Config: json.RawMessage(
			`{"communities": [{"name": "c1", "selected_by": "place"}, {"name": "all", ` +
				`"everyone": true, "selected_by": "class"}]}`,
		),
	}}})
	twin := restored(t, 1, core, config)
	defer twin.Close()
	want, seen := map[string]float64{"c1": 0, "all": 0.95}, 0
	for _, c := range []*Core{core, twin} {
		for _, e := range c.Step(&event.Batch{First: 3, Last: 3, Emit: true}).Estimates {
			if gamma, is := want[e.Community]; is {
				seen++
				if e.Gamma != gamma {
					t.Errorf("%s: gamma %v, want %v", e.Community, e.Gamma, gamma)
				}
			}
		}
	}
	if seen != 4 {
		t.Errorf("%d estimates, want 4", seen)
	}
}

// A community by a condition on attributes was selected by attribute, whether the file or the log
// defines it, and may be declared otherwise.
func TestConditionsOnAttributesSelectByAttribute(t *testing.T) {
	for text, want := range map[string]stats.Selection{
		`{"name":"a","where":{"language":"de"}}`:                       stats.ByAttribute,
		`{"name":"a","rule":"age > 30"}`:                               stats.ByAttribute,
		`{"name":"a","rule":"age > 30","selected_by":"class"}`:         stats.ByClass,
		`{"name":"a","where":{"language":"de"},"selected_by":"edges"}`: stats.ByEdges,
		`{"name":"a"}`:                 stats.ByEdges,
		`{"name":"a","everyone":true}`: stats.ByEdges,
		`{"name":"a","ego":{"root":"x","hops":1},"selected_by":"place"}`: stats.ByPlace,
	} {
		_, selected, err := parseCommunities([]byte(`{"communities":[` + text + `]}`))
		if err != nil || selected["a"] != want {
			t.Errorf("%s: selected by %q, %v; want %q", text, selected["a"], err, want)
		}
	}
}
