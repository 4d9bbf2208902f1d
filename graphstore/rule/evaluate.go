package rule

import (
	"cmp"
	"math"
	"strings"

	"gqlstream/ingest/event"
)

// eval computes a value from those of the keys.
type eval func(values []event.Value) event.Value

// mismatched is the kind of a result whose operands have types that do not go together. An
// operation on it gives mismatched again.
const mismatched = event.BoolValue + 1

var (
	null     = event.Value{}
	mismatch = event.Value{Kind: mismatched}
)

// kinds is a set of types, a bit for each. It leaves out nil, which every operand may be.
type kinds uint8

const (
	nothing  kinds = 1 << event.NullValue
	texts    kinds = 1 << event.StringValue
	numbers  kinds = 1 << event.NumberValue
	truths   kinds = 1 << event.BoolValue
	anything       = texts | numbers | truths
)

// String names the types in the words of messages.
func (k kinds) String() string {
	switch k {
	case texts:
		return "text"
	case numbers:
		return "a number"
	case truths:
		return "true or false"
	case texts | numbers:
		return "text or a number"
	}
	return "nil"
}

// boolean returns a truth value.
func boolean(b bool) event.Value {
	if b {
		return event.Value{Kind: event.BoolValue, Number: 1}
	}
	return event.Value{Kind: event.BoolValue}
}

// number returns x, or nil when x is not finite. Minus zero becomes zero.
func number(x float64) event.Value {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return null
	}
	return event.Value{Kind: event.NumberValue, Number: x + 0}
}

// truth reads a truth value, nil as false, and reports whether it is one.
func truth(v event.Value) (value, ok bool) {
	return v.Kind == event.BoolValue &&
			v.Number != 0, v.Kind == event.BoolValue ||
			v.Kind == event.NullValue
}

// not negates a truth value; nil counts as false.
func not(of eval) eval {
	return func(values []event.Value) event.Value {
		value, ok := truth(of(values))
		if !ok {
			return mismatch
		}
		return boolean(!value)
	}
}

// junction is "or", or else "and". The right side counts only when the left one has not decided.
func junction(left, right eval, or bool) eval {
	return func(values []event.Value) event.Value {
		value, ok := truth(left(values))
		if ok && value != or {
			value, ok = truth(right(values))
		}
		if !ok {
			return mismatch
		}
		return boolean(value)
	}
}

// operator is an operator of two values of one of its types. If a value is nil, it gives
// ofNil(whether both are).
type operator struct {
	takes, gives kinds
	steps        int // in addition to those of a node
	longest      int // bytes of the left text, a longer one is a mismatch; 0: any
	ofNil        func(both bool) event.Value
	of           func(a, b event.Value) event.Value
}

// run applies the operator to the values of two programs.
func (o operator) run(left, right eval) eval {
	return func(values []event.Value) event.Value {
		a, b := left(values), right(values)
		switch are := kinds(1)<<a.Kind | kinds(1)<<b.Kind; {
		case are&^(o.takes|nothing) != 0 || o.longest > 0 && len(a.Text) > o.longest:
			return mismatch
		case are&nothing != 0:
			return o.ofNil(are == nothing)
		case a.Kind != b.Kind:
			return mismatch
		}
		return o.of(a, b)
	}
}

var operators = map[string]operator{
	"==": equality(true), "!=": equality(false),
	"<":          order(func(sign int) bool { return sign < 0 }),
	"<=":         order(func(sign int) bool { return sign <= 0 }),
	">":          order(func(sign int) bool { return sign > 0 }),
	">=":         order(func(sign int) bool { return sign >= 0 }),
	"contains":   textual(stepsOfSearch, strings.Contains),
	"startsWith": textual(stepsOfSearch, strings.HasPrefix),
	"endsWith":   textual(stepsOfSearch, strings.HasSuffix),
	"+":          arithmetic(func(a, b float64) float64 { return a + b }),
	"-":          arithmetic(func(a, b float64) float64 { return a - b }),
	"*":          arithmetic(func(a, b float64) float64 { return a * b }),
	"/":          arithmetic(func(a, b float64) float64 { return a / b }),
	"%":          arithmetic(math.Mod),
}

// never returns false: the result of every comparison with nil, except for equality.
func never(bool) event.Value { return boolean(false) }

// equality compares values. Nil equals only nil, so that != is always the opposite of ==.
func equality(equal bool) operator {
	return operator{
		takes: anything, gives: truths,
		ofNil: func(both bool) event.Value { return boolean(both == equal) },
		of:    func(a, b event.Value) event.Value { return boolean((a == b) == equal) },
	}
}

// order compares numbers by size and texts byte by byte. A value has only one of the two, so the
// other comparison gives equal.
func order(holds func(sign int) bool) operator {
	return operator{
		takes: texts | numbers,
		gives: truths,
		ofNil: never,
		of: func(a, b event.Value) event.Value {
			return boolean(holds(cmp.Or(cmp.Compare(a.Text, b.Text),
				cmp.Compare(a.Number, b.Number))))
		},
	}
}

// textual applies a test of two texts.
func textual(steps int, holds func(a, b string) bool) operator {
	return operator{
		takes: texts,
		gives: truths,
		steps: steps,
		ofNil: never,
		of: func(a, b event.Value) event.Value {
			return boolean(holds(a.Text, b.Text))
		},
	}
}

// arithmetic computes with two numbers. Nil, or a result that is not finite, gives nil.
func arithmetic(do func(a, b float64) float64) operator {
	return operator{
		takes: numbers, gives: numbers,
		ofNil: func(bool) event.Value { return null },
		of:    func(a, b event.Value) event.Value { return number(do(a.Number, b.Number)) },
	}
}

// otherwise gives the right value if the left one is nil.
func otherwise(left, right eval) eval {
	return func(values []event.Value) event.Value {
		if v := left(values); v.Kind != event.NullValue {
			return v
		}
		return right(values)
	}
}

// isIn looks a value up in a list. At least one element should have its type.
func isIn(of eval, list []event.Value) eval {
	return func(values []event.Value) event.Value {
		v := of(values)
		if v.Kind == event.NullValue {
			return boolean(false)
		}
		comparable := false
		for i := range list {
			if list[i] == v {
				return boolean(true)
			}
			comparable = comparable || list[i].Kind == v.Kind
		}
		if !comparable {
			return mismatch
		}
		return boolean(false)
	}
}
