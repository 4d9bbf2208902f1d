package incremental

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	"gqlstream/graphstore"
	"gqlstream/incremental/prequential"
	"gqlstream/ingest/event"
)

// judgedSection keeps how right each model version has been: prequential.Row.
const judgedSection = "judged.arrow"

// judge holds every calibration label that arrived in a step against the prediction
// that its vertex had before the step, which it cannot have influenced. When that
// shows that a model version has become worse, or is well again, every community is
// published again.
func (c *Core) judge(view graphstore.View, delta *graphstore.Delta) {
	told := false
	for _, l := range delta.Labels {
		if l.Before.Class != event.NoClass || l.After.Class == event.NoClass || l.After.Role != event.Calibrate {
			continue
		}
		units, version := view.Prediction(l.V), view.Version(l.V)
		i, changed := slices.BinarySearchFunc(delta.Predictions, l.V,
			func(p graphstore.PredictionChange, v graphstore.Vertex) int { return cmp.Compare(p.V, v) })
		if changed {
			units, version = delta.Predictions[i].Before, delta.Predictions[i].VersionBefore
		}
		if units != nil {
			told = c.judged.Judge(version, units, l.After.Class) || told
		}
	}
	if told && c.warm {
		c.tallies.MoveAll()
	}
}

// Judged returns how right the model versions have been: the core's own, read-only,
// until the next Step.
func (c *Core) Judged() []prequential.Version { return c.judged.Versions() }

func (c *Core) writeJudged(w *bytes.Buffer) error { return graphstore.WriteRows(w, c.judged.Rows()) }

func (c *Core) restoreJudged(sections map[string][]byte) error {
	rows, err := readRows[prequential.Row](sections, judgedSection)
	if err != nil {
		return err
	}
	if c.judged, err = prequential.Restore(c.config.Classes, rows); err != nil {
		return fmt.Errorf("section %s: %w", judgedSection, err)
	}
	return nil
}
