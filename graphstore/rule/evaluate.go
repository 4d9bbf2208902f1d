package rule

import (
	"cmp"
	"math"

	"gqlstream/ingest/event"
)

// eval computes a value from those of the keys.
type eval func(values []event.Value) event.Value

// mismatched is the kind of the value of an expression whose types do not go
// together. Whatever is computed from one is one.
const mismatched event.ValueKind = 255

var (
	null     = event.Value{}
	mismatch = event.Value{Kind: mismatched}
)

// boolean returns a truth value.
func boolean(b bool) event.Value {
	if b {
		return event.Value{Kind: event.BoolValue, Number: 1}
	}
	return event.Value{Kind: event.BoolValue}
}

// number returns x, nil when it is not finite. There is one zero.
func number(x float64) event.Value {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return null
	}
	return event.Value{Kind: event.NumberValue, Number: x + 0}
}

// zero and empty are programs of a constant each.
func zero([]event.Value) event.Value  { return number(0) }
func empty([]event.Value) event.Value { return event.Value{Kind: event.StringValue} }

// truth reads a truth value, nil as false, and reports whether it is one.
func truth(v event.Value) (value, ok bool) {
	return v.Kind == event.BoolValue && v.Number != 0, v.Kind == event.BoolValue || v.Kind == event.NullValue
}

// not turns a truth value round; nil counts as false.
func not(of eval) eval {
	return func(values []event.Value) event.Value {
		value, ok := truth(of(values))
		if !ok {
			return mismatch
		}
		return boolean(!value)
	}
}

// junction is and, or the other one; the right side counts only when the left has
// not decided.
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

// equality compares values of one type. Nil equals only nil, so that != is always the opposite
// of ==.
func equality(left, right eval, equal bool) eval {
	return func(values []event.Value) event.Value {
		a, b := left(values), right(values)
		switch {
		case a.Kind == mismatched || b.Kind == mismatched:
			return mismatch
		case a.Kind == event.NullValue || b.Kind == event.NullValue:
			return boolean((a.Kind == b.Kind) == equal)
		case a.Kind != b.Kind:
			return mismatch
		}
		return boolean((a == b) == equal)
	}
}

// orders says for each operator which signs of a comparison make it true.
var orders = map[string]func(sign int) bool{
	"<":  func(sign int) bool { return sign < 0 },
	"<=": func(sign int) bool { return sign <= 0 },
	">":  func(sign int) bool { return sign > 0 },
	">=": func(sign int) bool { return sign >= 0 },
}

// order compares numbers by size and texts byte by byte.
func order(left, right eval, holds func(sign int) bool) eval {
	return func(values []event.Value) event.Value {
		a, b := left(values), right(values)
		switch {
		case a.Kind == mismatched || b.Kind == mismatched || a.Kind == event.BoolValue || b.Kind == event.BoolValue:
			return mismatch
		case a.Kind == event.NullValue || b.Kind == event.NullValue:
			return boolean(false)
		case a.Kind != b.Kind:
			return mismatch
		case a.Kind == event.StringValue:
			return boolean(holds(cmp.Compare(a.Text, b.Text)))
		}
		return boolean(holds(cmp.Compare(a.Number, b.Number)))
	}
}

// textual applies a question about two texts. It is not true of nil.
func textual(left, right eval, holds func(a, b string) bool) eval {
	return func(values []event.Value) event.Value {
		a, b := left(values), right(values)
		isText := func(v event.Value) bool { return v.Kind == event.StringValue }
		isNull := func(v event.Value) bool { return v.Kind == event.NullValue }
		switch {
		case isText(a) && isText(b):
			return boolean(holds(a.Text, b.Text))
		case (isText(a) || isNull(a)) && (isText(b) || isNull(b)):
			return boolean(false)
		}
		return mismatch
	}
}

// short keeps texts that are too long from a match.
func short(of, match eval) eval {
	return func(values []event.Value) event.Value {
		if len(of(values).Text) > matchTextBytesMax {
			return mismatch
		}
		return match(values)
	}
}

// arithmetic computes with two numbers. Nil makes nil, as whatever is not finite does.
func arithmetic(do func(a, b float64) float64, left, right eval) eval {
	return func(values []event.Value) event.Value {
		a, b := left(values), right(values)
		isNull := func(v event.Value) bool { return v.Kind == event.NullValue }
		isNumber := func(v event.Value) bool { return v.Kind == event.NumberValue }
		switch {
		case isNumber(a) && isNumber(b):
			return number(do(a.Number, b.Number))
		case (isNumber(a) || isNull(a)) && (isNumber(b) || isNull(b)):
			return null
		}
		return mismatch
	}
}

// otherwise gives the right value where the left is nil.
func otherwise(left, right eval) eval {
	return func(values []event.Value) event.Value {
		if v := left(values); v.Kind != event.NullValue {
			return v
		}
		return right(values)
	}
}

// isIn looks for a value in a list, of which one at least should have its type.
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
