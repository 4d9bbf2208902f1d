package web

import "slices"

// Model holds the accuracy of a model version, judged by labels as they arrive.
type Model struct {
	Version  string       `json:"version"`
	Degraded bool         `json:"degraded"`
	Drift    float64      `json:"drift"` // evidence that it is worse than at first: 0 is none, at 1 it is Degraded
	Classes  []ModelClass `json:"classes"`
}

// ModelClass is the same for the labels of one true class. Means fade.
type ModelClass struct {
	Class     string   `json:"class"`
	Judged    uint64   `json:"judged"`
	Accuracy  float64  `json:"accuracy"`
	Brier     float64  `json:"brier"`
	LogScore  float64  `json:"log_score"`
	Reference *float64 `json:"reference"` // accuracy at first; nil while there are too few labels
}

// judgedModels leaves out the classes of which no label has been judged.
func judgedModels(models []Model) []Model {
	out := []Model{}
	for _, m := range models {
		m.Classes = slices.DeleteFunc(append([]ModelClass{}, m.Classes...), func(c ModelClass) bool { return c.Judged == 0 })
		out = append(out, m)
	}
	return out
}
