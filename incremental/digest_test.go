package incremental

import (
	"encoding/json"
	"testing"
	"time"

	"gqlstream/graphstore"
	"gqlstream/ingest/event"
	"gqlstream/quant"
	"gqlstream/quant/stats"
)

// fullConfig sets a value in every struct that is a part of the configuration. Do not set fields
// here that are newer than the written digests: a new field must leave them unchanged.
func fullConfig() Config {
	return Config{
		Pipeline: "test", Classes: 3,
		Communities: []graphstore.Rule{
			{Name: "all", Kind: graphstore.Everyone},
			{
				Name: "german", Kind: graphstore.ByAttribute, Key: "language",
				Value: event.Value{Kind: event.StringValue, Text: "de"},
			},
		},
		Estimates: []quant.Options{
			{Method: quant.Auto, Confidence: 0.9}, {Method: "sis", Lambda: 0.5},
		},
		SelectedBy: map[string]stats.Selection{"german": stats.ByClass},
		Emit:       Emit{Threshold: 0.25, AtLeastEvery: 10 * time.Second},
		Models:     Models{SwitchAt: 0.7, LapseAfter: time.Hour},
		Limits:     event.Limits{Vertices: 1000, Edges: 5000},
		Windows:    graphstore.Windows{Edges: time.Hour},
		Evidence:   graphstore.EvidenceConfig{HalfLife: time.Hour},
		Late:       event.LatePolicy{After: time.Minute},
		Work:       Work{Solving: 1e6, Sketches: 10},
	}
}

// The digest of a configuration is in its records and checkpoints. If it changes, a start refuses
// the state directory of the same configuration. These digests are written down so that a new field
// does not change those of existing configurations.
func TestDigestsOfConfigurationsAreStable(t *testing.T) {
	for _, c := range []struct {
		name   string
		config Config
		want   string
	}{
		{"with defaults", Config{Classes: 2}, "189076c57d8ae93c"},
		{"with every section", fullConfig(), "23d0da23177cd099"},
	} {
		if got := c.config.Digest(); got != c.want {
			text, _ := json.Marshal(c.config.WithDefaults())
			t.Errorf("the digest of a configuration %s is %s, want %s: the configurations of "+
				"all users get other digests, and their state directories are refused. Give a "+
				"new field the tag omitzero or omitempty, and clear its default in WithDefaults "+
				"(clearDefault). The configuration is now\n%s", c.name, got, c.want, text)
		}
	}
}
