package alerts

import (
	"fmt"
	"math"
	"strings"
)

// Expected says of each rule how often it is expected to ring while nothing moves.
func (c Config) Expected() []string {
	rules := make([]Rule, len(c.Rules))
	var sharing float64
	for i, r := range c.Rules {
		if rules[i] = r.WithDefaults(); rules[i].When.Budgeted {
			sharing++
		}
	}
	budget := c.Budget
	if budget == (Budget{}) {
		budget = BudgetDefault
	}
	var out []string
	for _, r := range rules {
		text := "fires while a share is beyond its value, also by chance; low and high allow " +
			"for chance"
		switch {
		case r.When.Budgeted:
			part := budget
			part.Alarms /= sharing
			_, period, _ := strings.Cut(part.String(), " ")
			text = fmt.Sprintf(
				"about %s false alarms %s over all communities and classes, its part of "+
					"alerts.budget",
				short(part.Alarms), period,
			)
		case r.When.Quantity == CUSUM:
			often := (&tail{}).often(cusumShape(r.Drift), r.Threshold)
			text = fmt.Sprintf("about %s false alarms per month of each community and class; %s",
				short(often*month.Hours()/r.Every.Hours()),
				"without a number the threshold follows from alerts.budget")
		case r.When.Quantity == Change:
			text = "false alarms depend on how far shares move by themselves, and are shown " +
				"while it runs; " +
				"without a number the threshold follows from alerts.budget"
		}
		out = append(out, fmt.Sprintf("alert %s: %s", r.Name, text))
	}
	return out
}

// falseAlarms returns how many false alarms a month a rule is expected to make, given its series
// so far, and its threshold. Both are 0 for a rule on a level.
func (e *Engine) falseAlarms(at int) (perMonth, threshold float64) {
	r, t := &e.config.Rules[at], e.tails[at]
	if r.When.Quantity != CUSUM && r.When.Quantity != Change {
		return 0, 0
	}
	windows := month.Hours() / r.window().Hours()
	if often := e.often(at); r.When.Budgeted {
		return often * windows * float64(e.series[at]), t.threshold(r.shape(), often)
	}
	if r.When.Quantity == CUSUM {
		return t.often(r.shape(), r.Threshold) * windows * float64(e.series[at]), r.Threshold
	}
	// a change of a fixed size is another number of spreads in each series
	for _, a := range e.list {
		if a.rule != r {
			continue
		}
		if scale := a.Detector.scale(0); scale > 0 {
			height := math.Abs(r.When.Value) / scale
			perMonth += t.often(r.shape(), height) * windows / 2 // one direction of two
		}
	}
	return perMonth, math.Abs(r.When.Value)
}
