package alerts

import (
	"cmp"
	"fmt"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"gqlstream/quant"
	"gqlstream/quant/difference"
)

// Quantity names the quantity that a rule looks at.
type Quantity string

// The quantities of a rule.
const (
	Low    Quantity = "low"    // low end of the interval
	High   Quantity = "high"   // high end of the interval
	Point  Quantity = "point"  // the estimate itself
	Change Quantity = "change" // how far the share moved since Rule.Over ago
	CUSUM  Quantity = "cusum"  // of the movements in units of the usual one
)

// quantities in the order of messages.
var quantities = []Quantity{Low, High, Point, Change, CUSUM}

// NoData decides the state of an alert without data: its community has no estimate, is below the
// privacy floor, has no members, labels or predictions, or published nothing for Rule.NoDataAfter.
type NoData string

// Choices for an alert without data.
const (
	noDataKeep  NoData = "keep"  // firing stays firing, nothing begins to fire
	noDataAlert NoData = "alert" // as if the condition held
	noDataOK    NoData = "ok"    // as if it did not
)

// Defaults of a Rule.
const (
	driftDefault = 0.5
	everyDefault = time.Minute // of CUSUM
)

// suppressDefault are the flags under which a change means nothing.
var suppressDefault = []string{quant.FlagMixedModel, quant.FlagModelSwitching}

// Condition is a comparison with a number. A CUSUM has its own in Rule.Threshold. A change or a
// CUSUM without a number is compared with a threshold that follows from the budget.
type Condition struct {
	Quantity Quantity `json:"quantity"`
	Above    bool     `json:"above,omitempty"` // else below
	Value    float64  `json:"value,omitempty"`
	// the difference that is compared; empty: a share of the rule's communities
	Of       string `json:"of,omitempty"`
	Budgeted bool   `json:"budgeted,omitempty"`
}

// String is the form that ParseWhen reads, without the period of a change and the parameters of
// a CUSUM.
func (c Condition) String() string {
	left := string(c.Quantity)
	if c.Of != "" {
		left += " " + c.Of
	}
	if c.Quantity == CUSUM || c.Budgeted {
		return left
	}
	sign := map[bool]string{true: ">", false: "<"}[c.Above]
	return left + " " + sign + " " + strconv.FormatFloat(c.Value, 'g', -1, 64)
}

// beyond reports whether x is on the alert's side of value.
func (c Condition) beyond(x, value float64) bool {
	return c.Above && x > value || !c.Above && x < value
}

// Rule describes when alerts of some communities and classes fire. Times are of the log.
type Rule struct {
	Name        string    `json:"name"`
	Communities Patterns  `json:"communities"`      // none is every one
	Classes     Patterns  `json:"classes"`          // the same for classes
	Method      string    `json:"method,omitempty"` // empty: the first that is published
	When        Condition `json:"when"`
	// where it ends; nil: where it began, CUSUM: 0
	Recover   *float64      `json:"recover,omitempty"`
	Over      time.Duration `json:"over,omitempty"`      // Change: since when
	Drift     float64       `json:"drift,omitempty"`     // CUSUM: k; < 0 is 0.5
	Threshold float64       `json:"threshold,omitempty"` // CUSUM: h
	// evaluated once in each; 0: at each new estimate
	Every time.Duration `json:"every,omitempty"`
	// the condition must hold so long
	For    time.Duration `json:"for,omitempty"`
	NoData NoData        `json:"no_data"` // empty: keep
	// 0: an old estimate is as good as a new one
	NoDataAfter time.Duration `json:"no_data_after,omitempty"`
	// flags; nil: mixed-model, model-switching
	Suppress []string          `json:"suppress"`
	Labels   map[string]string `json:"labels,omitempty"` // passed on
}

// ParseWhen reads the condition of the rule: "low > 0.3", "difference(a, b) > 0.1", "low
// difference(a, b) > 0", "change over 1h > 0.1", "change over 1h", "cusum" or "cusum drift 0.5 >
// 5".
func (r *Rule) ParseWhen(text string) (err error) {
	before, of, after := difference.Cut(text)
	if of != "" && before == "" {
		before = string(Point)
	}
	words := strings.Fields(strings.NewReplacer("<", " < ", ">", " > ").Replace(
		before + " " + after))
	parameter := func(word string) (value string) {
		if at := slices.Index(words, word); at > 0 && at+1 < len(words) {
			value = words[at+1]
			words = slices.Delete(words, at, at+2)
		}
		return value
	}
	if over := parameter("over"); over != "" {
		if r.Over, err = time.ParseDuration(over); err != nil {
			return fmt.Errorf("over: %q: want a duration such as 10m", over)
		}
	}
	drift := parameter("drift")
	if drift != "" {
		if r.Drift, err = strconv.ParseFloat(drift, 64); err != nil || !(r.Drift >= 0) {
			return fmt.Errorf("drift: %s is not a number of usual movements", drift)
		}
	}
	if len(words) == 0 {
		words = []string{""}
	}
	quantity := Quantity(words[0])
	if !slices.Contains(quantities, quantity) {
		return fmt.Errorf("%q: %q is not one of %v", text, quantity, quantities)
	}
	if len(words) == 1 && (quantity == CUSUM || quantity == Change) {
		if drift != "" {
			return fmt.Errorf("%q: drift needs a number, as in cusum drift 0.5 > 8", text)
		}
		r.When = Condition{Quantity: quantity, Of: of, Budgeted: true}
		return nil
	}
	return r.parseComparison(text, quantity, of, words)
}

// parseComparison reads a quantity, a sign and a number.
func (r *Rule) parseComparison(text string, quantity Quantity, of string, words []string) error {
	cusum := quantity == CUSUM
	if len(words) != 3 || words[1] != ">" && words[1] != "<" || cusum && words[1] != ">" {
		return fmt.Errorf(
			"%q is not a condition such as low > 0.3, high < 0.1, change over 1h or cusum",
			text)
	}
	value, err := strconv.ParseFloat(words[2], 64)
	switch {
	case err != nil || math.IsNaN(value) || math.IsInf(value, 0):
		return fmt.Errorf("%q: %q is not a number", text, words[2])
	case cusum && value == 0:
		return fmt.Errorf("%q: want a threshold above 0", text)
	case cusum:
		r.When, r.Threshold = Condition{Quantity: CUSUM, Of: of}, value
	default:
		r.When = Condition{Quantity: quantity, Above: words[1] == ">", Value: value, Of: of}
	}
	return nil
}

// WithDefaults returns the rule with every default filled in.
func (r Rule) WithDefaults() Rule {
	if len(r.Communities) == 0 {
		r.Communities = Patterns{cmp.Or(r.When.Of, "*")}
	}
	if len(r.Classes) == 0 {
		r.Classes = Patterns{"*"}
	}
	r.NoData = cmp.Or(r.NoData, noDataKeep)
	if r.Suppress == nil {
		r.Suppress = suppressDefault
	}
	if r.When.Quantity == CUSUM {
		if r.Drift < 0 {
			r.Drift = driftDefault
		}
		r.Every = cmp.Or(r.Every, everyDefault)
	}
	return r
}

// recovery is the value that ends a firing alert.
func (r *Rule) recovery() float64 {
	if r.Recover != nil {
		return *r.Recover
	}
	return r.When.Value // 0 of a CUSUM
}

// shape is how the statistic of a change or a CUSUM behaves by itself.
func (r *Rule) shape() shape {
	switch {
	case r.When.Quantity == CUSUM && r.When.Budgeted:
		return spansShape
	case r.When.Budgeted:
		return windowShape
	case r.When.Quantity == CUSUM:
		return cusumShape(r.Drift)
	}
	return changeShape
}

// window is the time between two evaluations of a series by a change or a CUSUM.
func (r *Rule) window() time.Duration {
	if r.When.Quantity == CUSUM {
		return r.Every
	}
	return r.Over
}

// Patterns are names, or patterns of names with * and ?. A configuration has one, or a list.
type Patterns []string

// UnmarshalYAML reads one name, or a list.
func (p *Patterns) UnmarshalYAML(read func(any) error) error {
	var one string
	if read(&one) == nil {
		*p = Patterns{one}
		return nil
	}
	return read((*[]string)(p))
}

// Match reports whether one of the patterns describes a name.
func (p Patterns) Match(name string) bool {
	return slices.ContainsFunc(p, func(pattern string) bool { return Matches(pattern, name) })
}

// In patterns of path.Match, a slash and brackets are special.
var (
	plainName    = strings.NewReplacer("/", "\x00")
	plainPattern = strings.NewReplacer("/", "\x00", `\\`, `\\`, `\[`, `\[`, "[", `\[`)
)

// Matches reports whether a pattern describes a name: * stands for any text, ? for one
// character, and a backslash quotes the next character.
func Matches(pattern, name string) bool {
	matches, err := path.Match(plainPattern.Replace(pattern), plainName.Replace(name))
	return matches && err == nil // a pattern that ends in a backslash describes nothing
}
