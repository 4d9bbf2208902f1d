package quant

import (
	"fmt"

	"gqlstream/quant/auto"
	"gqlstream/quant/solve"
	"gqlstream/quant/stats"
)

// quantifier is a method: it answers from the statistics of a community. by says how labels are
// weighed by the kernel, for methods that do not choose for themselves.
type quantifier interface {
	Answer(s *stats.Statistics, by stats.Scaling) *stats.Answer
}

// Solver makes estimates. The zero value is ready. It keeps the workspaces of methods, which grow
// to the largest community seen. A Solver belongs to one goroutine at a time and carries nothing
// from one call to the next except the input of Snapshot, Divide, Widen and Distance: results do
// not depend on earlier estimates.
type Solver struct {
	automatic auto.Quantifier // has workspaces; the other methods have none
	ans       *stats.Answer   // of the method
	last      *Snapshot       // of the last Estimate
}

// quantifier returns the method of a row.
func (w *Solver) quantifier(row *method) quantifier {
	if row.quantifier == nil {
		return &w.automatic
	}
	return row.quantifier
}

// Estimate fills the statistical part of e for one community: method, preset, lambda, members,
// coverage, prevalence, interval, standard errors, effective labels, flags. Other fields (pipeline,
// community, position, time, kernel, model version, certificate, config) stay as the caller set
// them. No output is ever NaN.
//
// Labelled members are counted, the others estimated: with A labelled members by class and n
// members, prevalence = (A + (n - sum A) q) / n. It returns an error when an option is out of range
// or the statistics lack an input of the method; a poor answer is not an error but carries flags.
// Vectors of other lengths than s.K says are a mistake of the caller, and panic.
func (w *Solver) Estimate(e *Estimate, s *stats.Statistics, o Options) error {
	if err := o.Validate(); err != nil {
		return err
	}
	row := o.Method.row()
	if err := row.check(s); err != nil {
		return err
	}
	o = o.withDefaults()
	header(e, s, o)
	if w.ans = standIn(e, s, row); w.ans != nil {
		w.fill(e, s, o, false)
		return nil
	}
	w.ans = w.quantifier(row).Answer(s, o.scaling())
	w.fill(e, s, o, true)
	w.diagnose(e, s, row)
	return nil
}

// check reports statistics that lack an input of a method.
func (m *method) check(s *stats.Statistics) error {
	switch {
	case m.name == Auto:
		if solve.Sum(s.ClassN) > 0 && s.Posterior == nil {
			return fmt.Errorf("%s needs posteriors, which the statistics do not have", m.name)
		}
	case m.rests&onPredictions != 0 && s.Cells(m.reads) == nil:
		return fmt.Errorf("%s needs cells, which the statistics do not have", m.name)
	}
	return nil
}

// header fills the fields that do not depend on the method.
func header(e *Estimate, s *stats.Statistics, o Options) {
	e.Method, e.Preset = string(o.Method), string(o.Preset)
	e.Confidence, e.Simultaneous = o.Confidence, o.Simultaneous
	e.Members, e.Labelled = s.Members, s.Labelled
	e.Coverage = 1
	if open := s.Members - s.Labelled; open > 0 {
		e.Coverage = clamp(s.Profiled / open)
	}
	e.Flags = []string{}
}

// standIn returns an answer in place of that of a method which lacks an input, and puts a flag with
// the reason into e. It returns nil if the method has its inputs.
func standIn(e *Estimate, s *stats.Statistics, row *method) *stats.Answer {
	labels := solve.Sum(s.ClassN) > 0
	ans := stats.Fallback(s)
	switch {
	case !(s.Members > 0):
		e.Flags = append(e.Flags, FlagNoMembers)
	case !(s.Members > s.Labelled):
		return ans // every member is labelled: the answer is a count
	case row.rests&onAudits != 0 && s.Auditable():
		return nil
	case row.rests == onAudits:
		e.Flags = append(e.Flags, FlagFewAudits)
		return ans
	case row.rests&onPredictions != 0 && !(s.Profiled > 0):
		e.Flags = append(e.Flags, FlagNoCoverage)
	case labels || row.rests&onLabels == 0:
		return nil
	default:
		if c := s.Soft; c != nil && s.Profiled > 0 {
			copy(ans.Share, c.P)
		}
	}
	if !labels {
		e.Flags = append(e.Flags, FlagNoLabels)
	}
	return ans
}
