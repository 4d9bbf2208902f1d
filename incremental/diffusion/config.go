package diffusion

import (
	"cmp"
	"errors"
	"fmt"

	"gqlstream/graphstore"
)

// Vertex is the store's dense vertex index.
type Vertex = graphstore.Vertex

// Defaults of a Config, and the bounds of its values.
const (
	AlphaDefault     = 0.1
	ToleranceDefault = 1e-2

	alphaMin     = 1e-4 // iteration needs about 1/sqrt(alpha) steps a digit
	alphaMax     = 0.99
	toleranceMin = 1e-12 // below it rounding decides
	functionsMax = 1 << 16
)

// Config holds the teleport probability and the accuracy of a field or a dual.
type Config struct {
	Alpha     float64 // teleport probability, 1e-4 to 0.99; 0 is AlphaDefault
	Tolerance float64 // bound on the certificate after an Update, 1e-12 to 1; 0 is ToleranceDefault
	Functions int     // of a dual, L >= 1; a field has none
}

// Validate reports every violation.
func (c Config) Validate() error {
	var errs []error
	c = c.withDefaults()
	if !(c.Alpha >= alphaMin && c.Alpha <= alphaMax) {
		errs = append(errs, fmt.Errorf("alpha is %v, want %v to %v", c.Alpha, alphaMin, alphaMax))
	}
	if !(c.Tolerance >= toleranceMin && c.Tolerance <= 1) {
		errs = append(errs, fmt.Errorf("tolerance is %v, want %v to 1", c.Tolerance, toleranceMin))
	}
	if c.Functions < 0 || c.Functions > functionsMax {
		errs = append(errs, fmt.Errorf("functions is %d, want at most "+
			"%d", c.Functions, functionsMax))
	}
	return errors.Join(errs...)
}

func (c Config) withDefaults() Config {
	c.Alpha, c.Tolerance = cmp.Or(c.Alpha, AlphaDefault), cmp.Or(c.Tolerance, ToleranceDefault)
	return c
}
