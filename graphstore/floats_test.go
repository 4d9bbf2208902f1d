package graphstore

import (
	"bytes"
	"math"
	"slices"
	"testing"
)

// Columns of numbers must come back bit for bit, across several record batches.
func TestFloatsRoundTrip(t *testing.T) {
	for _, n := range []int{0, 1, 1000, chunkRowsMax + 17} {
		a, b := make([]float64, n), make([]float64, n)
		for i := range a {
			a[i], b[i] = math.Sqrt(float64(i)), -1/float64(i+1)
		}
		var data bytes.Buffer
		if err := WriteFloats(&data, []Floats{{"a", a}, {"b", b}}); err != nil {
			t.Fatal(err)
		}
		got, err := ReadFloats(data.Bytes(), "a", "b")
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got[0].Values, a) || !slices.Equal(got[1].Values, b) {
			t.Errorf("%d rows did not come back", n)
		}
		if _, err := ReadFloats(data.Bytes(), "b", "a"); err == nil {
			t.Error("columns of other names were read")
		}
	}
}
