package alerts

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"

	"gqlstream/quant"
)

// Limits of a configuration.
const (
	rulesMax    = 1000
	nameMax     = 128     // bytes of a rule's name
	changeCells = 60      // cells in the grid of past shares of a change
	alertsMax   = 100_000 // rule, community and class together
)

// labelName matches the label names that Prometheus takes.
var labelName = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9_]*$`)

// reservedLabels are the labels that delivery sets.
var reservedLabels = []string{"alertname", "rule", "community", "class", "method", "pipeline"}

// Config is the configuration of an Engine.
type Config struct {
	Pipeline string
	Classes  []string // names, in the order of the estimates
	Methods  []string // published; the first is the default of a rule
	Rules    []Rule
	Budget   Budget  // of false alarms; zero: BudgetDefault
	Display  Display // names in texts; none: those of the log
}

// Validate reports every violation at once.
func (c Config) Validate() error {
	var errs []error
	if len(c.Rules) > rulesMax {
		errs = append(errs, fmt.Errorf("alerts: %d rules, at most %d", len(c.Rules), rulesMax))
	}
	seen := map[string]bool{}
	for i, r := range c.Rules {
		where := fmt.Sprintf("alerts.rules[%d] %q", i, r.Name)
		bad := func(format string, args ...any) {
			errs = append(errs, fmt.Errorf(where+": "+format, args...))
		}
		switch {
		case r.Name == "" || len(r.Name) > nameMax:
			bad("name: want 1 to %d bytes", nameMax)
		case seen[r.Name]:
			bad("name: another rule has it")
		}
		seen[r.Name] = true
		r.WithDefaults().validate(c, bad)
	}
	return errors.Join(errs...)
}

func (r Rule) validate(c Config, bad func(string, ...any)) {
	for _, pattern := range r.Communities {
		if pattern == "" {
			bad("communities: one is empty")
		}
		if r.When.Of != "" && pattern != r.When.Of {
			bad("communities: the rule compares %s; remove %q", r.When.Of, pattern)
		}
	}
	for _, pattern := range r.Classes {
		if !slices.ContainsFunc(c.Classes,
			func(name string) bool { return Matches(pattern, name) }) {
			bad("classes: %q is not one of %v", pattern, c.Classes)
		}
	}
	if r.Method != "" && !slices.Contains(c.Methods, r.Method) {
		bad("method: %q is not published; %v are, see estimates", r.Method, c.Methods)
	}
	r.validateCondition(bad)
	if min(r.For, r.Every, r.NoDataAfter, r.Over) < 0 {
		bad("for, every, no_data or over is negative")
	}
	if !slices.Contains([]NoData{noDataKeep, noDataAlert, noDataOK}, r.NoData) {
		bad("no_data: %q is not one of keep, alert, ok", r.NoData)
	}
	for _, flag := range r.Suppress {
		if !slices.ContainsFunc(quant.FlagDocs(),
			func(d quant.FlagDoc) bool { return d.Name == flag }) {
			bad("suppress: no flag %q", flag)
		}
	}
	for key := range r.Labels {
		if !labelName.MatchString(key) || slices.Contains(reservedLabels, key) {
			bad("labels: %q is not a free name of letters, digits and _", key)
		}
	}
}

// validateCondition checks that the rule has the parameters of its detector and no others.
func (r Rule) validateCondition(bad func(string, ...any)) {
	value := r.When.Value
	switch r.When.Quantity {
	case "":
		bad("when: missing; for example low > 0.3")
	case CUSUM:
		if r.When.Budgeted != (r.Threshold == 0) || !(r.Threshold >= 0) ||
			math.IsInf(r.Threshold, 0) || !(r.Drift >= 0) || math.IsInf(r.Drift, 0) {
			bad("cusum: threshold %v and drift %v: want more than 0, and 0 or more",
				r.Threshold, r.Drift)
		}
		if x := r.recovery(); !(x >= 0 && (r.When.Budgeted || x < r.Threshold)) {
			bad("recover: %v is not between 0 and the threshold %v", x, r.Threshold)
		}
	case Change:
		if !(math.Abs(value) <= 1) {
			bad("when: a change is between -1 and 1")
		}
		if r.When.Budgeted && r.Recover != nil {
			bad("recover: a change whose threshold follows from the budget ends at half of it")
		}
	default:
		if !(value >= 0 && value <= 1) && !(r.When.Of != "" && value >= -1 && value <= 1) {
			bad("when: a share is between 0 and 1, a difference between -1 and 1")
		}
	}
	if r.When.Quantity != CUSUM {
		if r.Threshold != 0 || r.Drift > 0 {
			bad("only cusum has threshold and drift; the other conditions have a number in when")
		}
		if x := r.recovery(); !r.When.Budgeted && (math.IsNaN(x) || r.When.beyond(x, value)) {
			bad("recover: %v is beyond %s already: the alert would end as it begins", x, r.When)
		}
	}
	if (r.When.Quantity == Change) != (r.Over != 0) {
		bad("over: change needs a time, as in change over 1h > 0.1; other conditions have none")
	}
	if r.Over > 0 && r.Over < changeCells {
		bad("when: change over %v is too short", r.Over)
	}
}
