package web

import (
	"context"
	"slices"
	"time"
)

// judgement is the accuracy of a model version at a log time, class by class.
type judgement struct {
	Time     *time.Time `json:"time"` // log time; nil: the log has none
	Position uint64     `json:"position"`
	Version  string     `json:"version"`
	Drift    float64    `json:"drift"`
	Judged   uint64     `json:"judged"`   // labels of all classes
	Accuracy []*float64 `json:"accuracy"` // by class; null where no label of it was judged
}

// judgementsMost bounds the history. Beyond it, every second judgement is deleted.
const judgementsMost = 1_000

// classifierLog keeps how right each model version was since the process began.
type classifierLog struct {
	list  []judgement       // oldest first
	last  map[string]uint64 // judged, by version
	every uint64            // labels between two judgements of a version
}

// update adds the accuracies of a status, as far as labels were judged since.
func (l *classifierLog) update(s *Status, classes []string) {
	if l.last == nil {
		l.last, l.every = map[string]uint64{}, 1
	}
	for i := range s.Models {
		m := &s.Models[i]
		j := judgement{
			Time: s.LogTime, Position: s.Position, Version: m.Version, Drift: m.Drift,
			Accuracy: make([]*float64, len(classes)),
		}
		for c := range m.Classes {
			class := &m.Classes[c]
			j.Judged += class.Judged
			if at := slices.Index(classes, class.Class); at >= 0 {
				j.Accuracy[at] = &class.Accuracy
			}
		}
		if before, known := l.last[m.Version]; known && j.Judged < before+l.every {
			continue
		}
		l.last[m.Version] = j.Judged
		l.list = append(l.list, j)
	}
	if len(l.list) <= judgementsMost {
		return
	}
	kept := l.list[:0]
	for i, j := range l.list {
		if i%2 == 0 || i == len(l.list)-1 {
			kept = append(kept, j)
		}
	}
	clear(l.list[len(kept):])
	l.list, l.every = kept, 2*l.every
}

// classifierAnswer says how right the classifier is, and was.
type classifierAnswer struct {
	Started time.Time   `json:"started"` // the history begins with the process
	Models  []Model     `json:"models"`
	History []judgement `json:"history"` // oldest first

	Confusion Confusion `json:"confusion"`
}

func askClassifier(_ context.Context, s *Server, _ *params) (any, error) {
	s.journal.mu.Lock()
	defer s.journal.mu.Unlock()
	return classifierAnswer{
		Started: s.started.UTC(),
		Models:  append([]Model{}, s.journal.status.Models...),
		History: append([]judgement{}, s.journal.judgements.list...),

		Confusion: s.journal.status.Confusion.withLists(len(s.config.Classes)),
	}, nil
}
