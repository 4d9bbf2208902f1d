package main

import (
	"testing"
	"time"

	"gqlstream/ingest/event"
	"gqlstream/pipeline/config"
)

// sampleSettings are a configuration for the sample, changed by change.
func sampleSettings(change func(*config.Settings)) config.Settings {
	settings := config.Settings{Classes: config.Classes{"a", "b", "c"}}
	change(&settings)
	return settings
}

func resultsOf(t *testing.T, settings config.Settings) string {
	t.Helper()
	conf, err := settings.Core()
	if err != nil {
		t.Fatal(err)
	}
	results, err := resultsDigest(conf)
	if err != nil {
		t.Fatal(err)
	}
	return results
}

// The digest of results must be the same each time and depend on every key that decides how a
// history is estimated, and on nothing else. Keys that decide what of a log comes into a history
// (late, step, limits, control) have the digest of the configuration.
func TestResultsDigestNamesResults(t *testing.T) {
	same := func(*config.Settings) {}
	plain := resultsOf(t, sampleSettings(same))
	if again := resultsOf(t, sampleSettings(same)); again != plain {
		t.Errorf("%s, and then %s", plain, again)
	}
	threshold := 3.
	for name, change := range map[string]func(*config.Settings){
		"classes": func(s *config.Settings) {
			s.Classes = config.Classes{"a", "b"}
		},
		"method": func(s *config.Settings) {
			s.Estimates = []config.Estimate{{Method: "pcc"}}
		},
		"kernel":           func(s *config.Settings) { s.Kernel = "lazy" },
		"alpha":            func(s *config.Settings) { s.Alpha = 0.3 },
		"classifier":       func(s *config.Settings) { s.Classifier = "diffusion" },
		"label_half_life":  func(s *config.Settings) { s.HalfLife = 24 * time.Hour },
		"labels.drawn":     func(s *config.Settings) { s.Labels.Drawn = "by-class" },
		"models.switch_at": func(s *config.Settings) { s.Models.SwitchAt = .3 },
		"emit.threshold":   func(s *config.Settings) { s.Emit.Threshold = &threshold },
		"windows.edges":    func(s *config.Settings) { s.Windows.Edges = 50 * time.Hour },
		"windows.labels":   func(s *config.Settings) { s.Windows.Labels = 50 * time.Hour },
		"windows.predictions": func(s *config.Settings) {
			s.Windows.Predictions = 50 * time.Hour
		},
		"evidence.half_life": func(s *config.Settings) {
			s.Evidence.HalfLife = 24 * time.Hour
		},
		"evidence.edge_ttl": func(s *config.Settings) { s.Evidence.EdgeTTL = 12 * time.Hour },
		"evidence.except": func(s *config.Settings) {
			s.Evidence.Except = `side == "east"`
		},
		"privacy.round": func(s *config.Settings) { s.Privacy.Round = .05 },
		"group.shards":  func(s *config.Settings) { s.Group.Shards = 4 },
		"communities by side": func(s *config.Settings) {
			s.Communities = []config.Community{{Name: "east", Expression: `side == "east"`}}
		},
		"everyone": func(s *config.Settings) {
			s.Communities = []config.Community{{Name: "everyone", Everyone: true}}
		},
	} {
		if resultsOf(t, sampleSettings(change)) == plain {
			t.Errorf("another %s has the same results", name)
		}
	}
	elsewhere := sampleSettings(func(s *config.Settings) { s.State = "elsewhere" })
	if digest := resultsOf(t, elsewhere); digest != plain {
		t.Errorf("another state directory has other results: %s, want %s", digest, plain)
	}
}

// Each kind of event in the sample must matter: otherwise a version that computes from it
// otherwise would have the same digest.
func TestEachPartOfTheSampleMatters(t *testing.T) {
	settings := sampleSettings(func(s *config.Settings) {
		s.Communities = []config.Community{{Name: "east", Expression: `side == "east"`}}
		s.Estimates = []config.Estimate{{Method: "auto"}, {Method: "audit"}}
	})
	conf, err := settings.Core()
	if err != nil {
		t.Fatal(err)
	}
	digest := func(leaveOut func(*event.Batch)) string {
		t.Helper()
		history := sampleHistory(conf.Classes)
		for _, b := range history {
			leaveOut(b)
		}
		results, err := digestOf(conf, history)
		if err != nil {
			t.Fatal(err)
		}
		return results
	}
	whole := digest(func(*event.Batch) {})
	for name, leaveOut := range map[string]func(*event.Batch){
		"edges":       func(b *event.Batch) { b.Edges = nil },
		"labels":      func(b *event.Batch) { b.Labels = nil },
		"predictions": func(b *event.Batch) { b.Predictions = nil },
		"posts":       func(b *event.Batch) { b.Posts = nil },
		"members":     func(b *event.Batch) { b.Members = nil },
		"vertices":    func(b *event.Batch) { b.Vertices = nil },
		"weights": func(b *event.Batch) {
			every(b.Edges, func(e *event.Edge) { e.Weight = 1 })
		},
		"edges' ends": func(b *event.Batch) {
			every(b.Edges, func(e *event.Edge) { e.TTL = 0 })
		},
		"removed edges": func(b *event.Batch) {
			every(b.Edges, func(e *event.Edge) { e.Remove = false; e.Weight = 1 })
		},
		"roles": func(b *event.Batch) {
			every(b.Labels, func(l *event.Label) { l.Role, l.Pi = event.Calibrate, 0 })
		},
		"labels' ends": func(b *event.Batch) {
			every(b.Labels, func(l *event.Label) { l.TTL = 0 })
		},
		"multiplicities": func(b *event.Batch) {
			every(b.Members, func(m *event.Member) { m.Multiplicity = min(m.Multiplicity, 1) })
		},
		"versions": func(b *event.Batch) {
			every(b.Predictions, func(p *event.Prediction) { p.Version = "one" })
		},
		"replies": func(b *event.Batch) {
			every(b.Posts, func(p *event.Post) { p.ReplyTo = event.Reference{} })
		},
		"erasures": func(b *event.Batch) {
			every(b.Vertices, func(v *event.Vertex) { v.Erase = false })
		},
	} {
		if digest(leaveOut) == whole {
			t.Errorf("without %s the results are the same", name)
		}
	}
}

func every[T any](list []T, change func(*T)) {
	for i := range list {
		change(&list[i])
	}
}
