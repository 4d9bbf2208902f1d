package web

import "github.com/prometheus/client_golang/prometheus"

// Model is how right a model version has been, judged by labels as they arrive.
type Model struct {
	Version  string
	Degraded bool
	Drift    float64 // evidence that it is worse than at first: 0 is none, at 1 it is Degraded
	Classes  []ModelClass
}

// ModelClass is the same for the labels of one true class. Means fade.
type ModelClass struct {
	Class                     string
	Judged                    uint64
	Accuracy, Brier, LogScore float64
	Reference                 *float64 // accuracy at first; nil while there are too few labels
}

// modelAnswer and modelClassAnswer are a Model as the API shows it.
type modelAnswer struct {
	Version  string             `json:"version"`
	Degraded bool               `json:"degraded"`
	Drift    float64            `json:"drift"`
	Classes  []modelClassAnswer `json:"classes"`
}

type modelClassAnswer struct {
	Class     string   `json:"class"`
	Judged    uint64   `json:"judged"`
	Accuracy  float64  `json:"accuracy"`
	Brier     float64  `json:"brier"`
	LogScore  float64  `json:"log_score"`
	Reference *float64 `json:"reference"`
}

// modelAnswers leaves out the classes of which no label has been judged.
func modelAnswers(models []Model) []modelAnswer {
	out := []modelAnswer{}
	for _, m := range models {
		one := modelAnswer{m.Version, m.Degraded, m.Drift, []modelClassAnswer{}}
		for _, c := range m.Classes {
			if c.Judged > 0 {
				one.Classes = append(one.Classes, modelClassAnswer(c))
			}
		}
		out = append(out, one)
	}
	return out
}

// modelDescs are about the model versions.
type modelDescs struct {
	judged, accuracy, reference, brier, logScore *prometheus.Desc // by class too
	drift, degraded                              *prometheus.Desc
}

func (m *metrics) describeModels(desc describe) {
	by := []string{"version", "class"}
	m.models = modelDescs{
		judged:    desc("model_judged_total", "Calibration labels that a prediction of the version was held against.", by...),
		accuracy:  desc("model_accuracy", "Faded share of these that it said.", by...),
		reference: desc("model_accuracy_reference", "The same of the first ones.", by...),
		brier:     desc("model_brier", "Faded mean of its Brier score.", by...),
		logScore:  desc("model_log_score", "Faded mean of its log score.", by...),
		drift:     desc("model_drift", "Evidence that the version is worse than at first; flagged from 1 on.", "version"),
		degraded:  desc("model_degraded", "1 while the version is flagged classifier-drift.", "version"),
	}
}

func (m *metrics) collectModels(ch chan<- prometheus.Metric, models []Model) {
	d := &m.models
	for _, v := range models {
		gauge(ch, d.drift, v.Drift, v.Version)
		gauge(ch, d.degraded, boolean(v.Degraded), v.Version)
		for _, c := range v.Classes {
			if c.Judged == 0 {
				continue
			}
			count(ch, d.judged, c.Judged, v.Version, c.Class)
			gauge(ch, d.accuracy, c.Accuracy, v.Version, c.Class)
			gauge(ch, d.brier, c.Brier, v.Version, c.Class)
			gauge(ch, d.logScore, c.LogScore, v.Version, c.Class)
			if c.Reference != nil {
				gauge(ch, d.reference, *c.Reference, v.Version, c.Class)
			}
		}
	}
}
