package event

import "strconv"

// ExactMax is the number up to which a float64 holds every whole number.
const ExactMax = 1 << 53

// WholeValue returns the attribute value of a whole number with these digits, and perhaps a minus
// sign. Beyond 2^53 it is text: such numbers are ids, and as float64s different ids would become
// equal.
func WholeValue(digits string) Value {
	x, _ := strconv.ParseFloat(digits, 64)
	if x > ExactMax || x < -ExactMax {
		return Value{Kind: StringValue, Text: digits}
	}
	return Value{Kind: NumberValue, Number: x}
}
