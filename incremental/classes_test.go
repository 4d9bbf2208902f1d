package incremental

import (
	"strings"
	"testing"

	"gqlstream/graphstore"
	"gqlstream/ingest/event"
	"gqlstream/quant"
)

// With a method that weighs cells a core must stay with fields, however many communities there are.
func TestMethodsThatWeighCellsStayWithFields(t *testing.T) {
	const classes = 50
	config := Config{
		Classes: classes, Communities: []graphstore.Rule{{Name: "all", Kind: graphstore.Everyone}},
		Estimates: []quant.Options{{Method: quant.SISNACC}},
	}
	core := newCore(t, config)
	defer core.Close()
	units := make([]uint32, classes)
	units[7] = event.One
	for step := range event.Position(6) {
		at := func(i event.Position) event.ID { return event.NumberID(uint64(step + i)) }
		batch := event.Batch{First: step + 1, Last: step + 1, Emit: true}
		batch.Edges = []event.Edge{
			{Src: at(0), Dst: at(1), Weight: 1},
			{Src: at(0), Dst: at(2), Weight: 1},
		}
		batch.Labels = []event.Label{{Vertex: at(0), Class: 7}}
		batch.Predictions = []event.Prediction{
			{Vertex: at(0), Units: units},
			{Vertex: at(1), Units: units},
		}
		batch.Members = []event.Member{{Community: at(0).String(), Vertex: at(1), Multiplicity: 1}}
		for _, e := range core.Step(&batch).Estimates {
			if e.Engine != "" {
				t.Fatalf("step %d: engine %s", step, e.Engine)
			}
		}
	}
}

// More classes than an engine or a method has room for must be refused before anything
// runs, and methods that have room be left alone.
func TestTooManyClassesAreRefused(t *testing.T) {
	for _, test := range []struct {
		classes int
		engine  string
		method  quant.Method
		want    string // in the error; "" is none
	}{
		{40, EngineDual, quant.SISNACC, ""},
		{50, EngineDual, quant.NACC, ""},
		{256, EngineDual, quant.Auto, ""},
		{50, EngineDual, quant.Auto, ""},
		{50, EngineDual, quant.PACC, ""},
		{50, "", quant.Auto, ""},
		{256, EnginePrimal, quant.Auto, ""},
		{257, EnginePrimal, quant.Auto, "estimates: auto"},
		{257, "", "nacc-hard", "estimates: nacc-hard"},
		{1024, "", quant.Diff, ""},
	} {
		config := Config{
			Classes:   test.classes,
			Engine:    test.engine,
			Estimates: []quant.Options{{Method: test.method}},
		}
		err := config.Validate()
		if (err == nil) != (test.want == "") ||
			err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf(
				"%d classes, engine %s, %s: error %v, want %q", test.classes, test.engine,
				test.method, err, test.want,
			)
		}
	}
}
