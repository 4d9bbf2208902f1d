package diffusion

import (
	"errors"
	"fmt"
	"math"

	"gqlstream/graphstore"
)

// State returns a copy of all that a later Update depends on: Z and R hold the
// layers one after the other, and x_S in the last place of Z. 16 (S + 1) bytes a
// vertex and 12 a source.
func (l *Layered) State() State {
	n, steps := len(l.last), len(l.layers)
	s := State{Z: make([]float64, 0, (steps+1)*n), R: make([]float64, (steps+1)*n)}
	for k := range l.layers {
		s.Z = append(s.Z, l.layers[k].y...)
		for v, c := range l.layers[k].cells {
			s.R[k*n+v] = c.r
		}
	}
	s.Z = append(s.Z, l.last...)
	b := []byte{stateVersion, asByte(l.stale), 0, 0}
	b = appendNumbers(b, l.scalars(), &l.work)
	b = l.appendSources(b)
	s.Rest = b
	return s
}

func (l *Layered) scalars() []*float64 {
	return []*float64{&l.keep, &l.sourceSum, &l.degreeSum, &l.residual, &l.rounding, &l.floor, &l.lift}
}

// RestoreLayered makes the kernel of a state whose graph, at that time, is view.
// The tolerance may differ from the one it was kept to; alpha and the number of
// steps may not. It trusts no length in the state and does not keep it.
func RestoreLayered(config LayeredConfig, view graphstore.View, state State) (*Layered, error) {
	l, err := NewLayered(config)
	if err != nil {
		return nil, err
	}
	keep := l.keep
	if err := l.decode(view, state); err != nil {
		return nil, fmt.Errorf("diffusion: restore %s kernel: %w", config.Kernel, err)
	}
	if l.keep != keep {
		return nil, fmt.Errorf("diffusion: restore %s kernel: alpha was %v, is %v", config.Kernel, 1-l.keep, 1-keep)
	}
	return l, nil
}

func (l *Layered) decode(view graphstore.View, state State) error {
	d := decoder{rest: state.Rest}
	head := d.take(4)
	if head == nil {
		return errTruncated
	}
	if head[0] != stateVersion {
		return fmt.Errorf("version %d, want %d", head[0], stateVersion)
	}
	l.stale = head[1] == 1
	d.numbers(l.scalars(), &l.work)
	sources, n := d.uint64(), view.Vertices()
	if want := (len(l.layers) + 1) * n; len(state.Z) != want || len(state.R) != want {
		return fmt.Errorf("%d values and %d residuals, the graph's %d vertices want %d",
			len(state.Z), len(state.R), n, want)
	}
	if !(l.lift >= 1 && l.lift <= liftMax) {
		return fmt.Errorf("bar at %v of the least, want 1 to %v", l.lift, liftMax)
	}
	if d.short || sources > uint64(n) || uint64(len(d.rest)) != 12*sources {
		return errTruncated
	}
	l.grow(n)
	for k := range l.layers {
		copy(l.layers[k].y, state.Z[k*n:])
		for v := range n {
			l.layers[k].cells[v] = cell{r: state.R[k*n+v], d: l.degree(view.Degree(Vertex(v)))}
		}
	}
	copy(l.last, state.Z[len(l.layers)*n:])
	return l.decodeSources(&d, sources)
}

// Check recomputes everything that the kernel keeps from y, the source and view, and
// reports what differs by more than the rounding accounted for.
func (l *Layered) Check(view graphstore.View) error {
	if l.stale {
		return nil
	}
	if len(l.last) != view.Vertices() {
		return fmt.Errorf("diffusion: %s kernel of %d vertices, graph of %d", l.config.Kernel, len(l.last), view.Vertices())
	}
	var errs []error
	var apart, allowed, residual float64
	for i := range l.last {
		v := Vertex(i)
		d := l.degree(view.Degree(v))
		for k := range l.layers {
			of := &l.layers[k]
			c := of.cells[v]
			if c.d != d {
				errs = append(errs, fmt.Errorf("degree of %d at layer %d is %v, graph says %v", v, k, c.d, d))
			}
			in, rounding := l.arrives(view, v, k, d)
			apart += math.Abs(in - d*of.y[v] - c.r)
			allowed += rounding + 4*(math.Abs(c.r)+d*math.Abs(of.y[v]))
			residual += l.gains[k] * math.Abs(c.r)
		}
		in, rounding := l.arrives(view, v, len(l.layers), d)
		apart += math.Abs(in - l.last[v])
		allowed += rounding
	}
	allowed = (allowed + l.rounding) * unitRoundoff
	if !(apart <= allowed) {
		errs = append(errs, fmt.Errorf("distance of R from its definition is %v, allowed %v", apart, allowed))
	}
	if !(math.Abs(residual-l.residual) <= allowed) {
		errs = append(errs, fmt.Errorf("sum of |R| is %v, recomputed %v, allowed difference %v", l.residual, residual, allowed))
	}
	if want := view.WeightSum() + float64(len(l.last)); l.degreeSum != want {
		errs = append(errs, fmt.Errorf("sum of degrees is %v, graph says %v", l.degreeSum, want))
	}
	if len(errs) > 0 {
		return fmt.Errorf("diffusion: %w", errors.Join(errs...))
	}
	return nil
}
