package explain

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"gonum.org/v1/gonum/floats"

	"gqlstream/incremental"
	"gqlstream/ingest/event"
	"gqlstream/quant"
)

// Place is a place in the log: of a view, or a position or a time of the question; the zero value
// is none.
type Place struct {
	Position event.Position
	Time     event.Time
}

// Passed reports whether a batch goes beyond the place.
func (p Place) Passed(b *event.Batch) bool {
	return p.Position > 0 && b.Last > p.Position || p.Time != 0 && b.Time > p.Time
}

// end describes the state that the copy is in; its predictions have no version.
func (w *Walk) end(p Place, version string) quant.ExplanationEnd {
	view := w.core.View()
	end := quant.ExplanationEnd{Position: uint64(p.Position), Estimate: w.last}
	if community, known := view.FindCommunity(w.options.Community); known {
		members, _ := view.Members(community)
		end.Vertices = len(members)
		floor := w.options.Config.MembersMin
		end.BelowFloor = w.core.BelowFloor(w.options.Community, floor)
	}
	end.Estimate.ModelVersion = cmp.Or(w.last.ModelVersion, version)
	if p.Time != 0 {
		end.Time = p.Time.String()
	}
	end.Estimate.Position, end.Estimate.Time = end.Position, end.Time
	end.Estimate.Config = ""                             // of the copy
	end.Estimate.Moved, end.Estimate.SEChange = nil, nil // of one step of it
	end.Estimate.Revised, end.Estimate.SERevised = nil, nil
	end.Estimate.Counted, end.Estimate.SECounted = nil, nil
	return end
}

// arrive applies every cause and returns the causes, with the coefficients and gamma of auto if
// they differ at the second state. From here on the combinations set these, not the log.
func (w *Walk) arrive(ctx context.Context, causes []cause) ([]cause, error) {
	for i := range causes {
		if err := w.put(ctx, causes[i].groups, after, false); err != nil {
			return nil, err
		}
	}
	if w.options.Estimate.Method != quant.Auto {
		return causes, w.stepAcross(ctx)
	}
	was, gammas := w.core.Coefficients(), [2]float64{w.last.Gamma, 0}
	if w.options.SameFit {
		w.core.Hold(incremental.Choices{Epoch: was})
	} else {
		w.core.Hold(incremental.Choices{})
	}
	if err := w.stepAcross(ctx); err != nil {
		return nil, err
	}
	is := w.core.Coefficients()
	gammas[after] = cmp.Or(w.options.Gamma[after], w.last.Gamma)
	if was == nil || is == nil {
		w.refit = true // a state without labels has nothing that another could be read with
		return causes, nil
	}
	decided := func(kind, what string, values ...any) {
		causes = append(
			causes,
			cause{kind: kind, details: []quant.Detail{{What: fmt.Sprintf(what, values...)}}},
		)
	}
	if was.Same(is) {
		was = is
	} else {
		decided(quant.CauseCoefficients, "fitted on %d labels, before on %d", is.Count, was.Count)
	}
	if gammas[before] != gammas[after] {
		decided(quant.CauseGamma, "members look chosen by opinion: %.0f %%, before %.0f %%",
			100*gammas[after], 100*gammas[before])
	}
	w.ends = [2]incremental.Choices{
		{Epoch: was, Gamma: &gammas[before]},
		{Epoch: is, Gamma: &gammas[after]},
	}
	w.reading = w.ends[after]
	w.core.Hold(w.reading)
	return causes, w.step(ctx, true)
}

// stepAcross makes the estimate of the second state. It is the copy's first record since that of
// the first state, so its change has the errors of the whole walk.
func (w *Walk) stepAcross(ctx context.Context) error {
	err := w.step(ctx, true)
	w.errors = [2][]float64{w.last.SEChange, w.last.SERevised}
	return err
}

// To compares with the state of a core and returns the causes of the estimate's change. It is
// called once.
func (w *Walk) To(ctx context.Context, to *incremental.Core, p Place) (*quant.Explanation, error) {
	own, _ := w.core.View().FindCommunity(w.options.Community)
	community, known := to.View().FindCommunity(w.options.Community)
	if !known {
		return nil, ErrUnknown
	}
	here, there := read(w.core, own), read(to, community)
	here.version = w.version
	causes := causesOf(here, there)
	for i := range causes { // before the walk, which changes the copy's view
		causes[i].details = w.details(&causes[i], &here, &there)
	}
	if w.ages[after] = to.Ages(); w.ages[after] != w.ages[before] {
		w.core.HoldAges(w.ages[after])
		causes = append(causes, cause{
			kind:    quant.CauseAge,
			details: []quant.Detail{{What: "predictions and labels are older"}},
		})
	}
	causes, err := w.arrive(ctx, causes)
	if err != nil {
		return nil, err
	}
	w.most = 1<<len(causes) + 1
	for i := range causes {
		w.most += len(w.alone(&causes[i]))
	}
	end := w.end(p, there.version)
	values, err := w.values(ctx, causes)
	if err != nil {
		return nil, err
	}
	x := &quant.Explanation{
		Community: w.options.Community, Method: w.last.Method, Classes: w.options.Classes,
		From: w.from, To: end, States: len(values), Causes: []quant.Cause{},
		SEChange: w.errors[0], SERevised: w.errors[1],
	}
	for j, contribution := range shapley(len(causes), values) {
		c := &causes[j]
		x.Causes = append(x.Causes, quant.Cause{
			Kind: c.kind, Contribution: contribution, Changes: len(c.groups),
			Details: c.details,
		})
	}
	x.Settle()
	return x, w.largest(ctx, x, causes)
}

// aloneMax bounds the changes of a cause that are looked at alone. Where there are more, none is:
// each is a small part of the whole.
const aloneMax = 64

// alone returns the changes of a cause that are looked at alone.
func (w *Walk) alone(c *cause) []group {
	if w.options.Named == 0 || len(c.groups) > aloneMax {
		return nil
	}
	return c.groups
}

// largest looks at changes alone: the copy, in the last state, takes each back, and makes it again.
func (w *Walk) largest(ctx context.Context, x *quant.Explanation, causes []cause) error {
	end := x.To.Estimate.Prevalence
	if w.reading.Gamma != nil { // a change of its own begins no epoch, but moves gamma
		w.core.Hold(incremental.Choices{Epoch: w.reading.Epoch})
	}
	for j := range causes {
		var effects []quant.Effect
		for _, g := range w.alone(&causes[j]) {
			if err := w.put(ctx, []group{g}, before, true); err != nil {
				return err
			}
			effects = append(effects, effectOf(g, end, w.last.Prevalence))
			if err := w.put(ctx, []group{g}, after, false); err != nil {
				return err
			}
		}
		slices.SortStableFunc(effects, func(a, b quant.Effect) int {
			return cmp.Compare(floats.Norm(b.Effect, 1), floats.Norm(a.Effect, 1))
		})
		x.Causes[j].Largest = effects[:min(len(effects), w.options.Named)]
	}
	return nil
}

func effectOf(g group, end, without []float64) quant.Effect {
	e := quant.Effect{Vertex: g[0].u.String(), Effect: make([]float64, len(end))}
	if g[0].kind == event.KindEdge {
		e.Other = g[0].v.String()
	}
	for k := range end {
		e.Effect[k] = end[k] - without[k]
	}
	return e
}
