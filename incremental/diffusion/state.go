package diffusion

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"gqlstream/graphstore"
)

// stateVersion is the first byte of a field's binary form.
const stateVersion = 2

// Residuals could be computed anew from z and the graph at a restart, at half the bytes. But
// the residual by definition differs from the one that was kept by what was rounded on the
// way, and with it the vertex that is pushed next: the restored field would be as good as
// the other and not the same.

// State is all of a field that a later Update depends on, residuals included, so
// that a restored field goes on with the same bits. Degrees are not in it, the
// graph has them; nor is what the last call touched.
type State struct {
	Z, R []float64 // n: solution and residual
	Rest []byte    // sources, running sums and counters
}

// State returns a copy of the field's state: 16 bytes a vertex and 12 a source.
func (f *Field) State() State {
	s := State{Z: slices.Clone(f.z), R: slices.Clone(f.r)}
	b := []byte{stateVersion, asByte(f.stale), 0, 0}
	b = appendNumbers(b, f.scalars(), &f.work)
	b = f.appendSources(b)
	s.Rest = b
	return s
}

func (f *Field) scalars() []*float64 {
	return []*float64{
		&f.keep, &f.sourceSum, &f.degreeSum, &f.residual, &f.signed, &f.rounding,
		&f.floor, &f.lift, &f.pace,
	}
}

func (w *Work) counters() []*uint64 {
	return []*uint64{
		&w.Pushes, &w.Traversals, &w.Iterations, &w.Solves, &w.Rebuilds, &w.Shifts,
		&w.injected, &w.shiftedAt, &w.rebuiltAt,
	}
}

// appendNumbers appends running sums and counters.
func appendNumbers(b []byte, scalars []*float64, work *Work) []byte {
	for _, x := range scalars {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(*x))
	}
	for _, x := range work.counters() {
		b = binary.LittleEndian.AppendUint64(b, *x)
	}
	return b
}

func asByte(on bool) byte {
	if on {
		return 1
	}
	return 0
}

// RestoreField makes the field of a state whose graph, at that time, is view. The
// tolerance may differ from the one it was kept to; alpha may not. It trusts no
// length in the state and does not keep it.
func RestoreField(config Config, view graphstore.View, state State) (*Field, error) {
	f, err := NewField(config)
	if err != nil {
		return nil, err
	}
	keep := f.keep
	if err := f.decode(view, state); err != nil {
		return nil, fmt.Errorf("diffusion: restore field: %w", err)
	}
	if f.keep != keep {
		return nil, fmt.Errorf("diffusion: restore field: alpha was %v, is %v", 1-f.keep, 1-keep)
	}
	return f, nil
}

var errTruncated = errors.New("truncated")

func (f *Field) decode(view graphstore.View, state State) error {
	d := decoder{rest: state.Rest}
	head := d.take(4)
	if head == nil {
		return errTruncated
	}
	if head[0] != stateVersion {
		return fmt.Errorf("version %d, want %d", head[0], stateVersion)
	}
	f.stale = head[1] == 1
	d.numbers(f.scalars(), &f.work)
	n, sources := uint64(len(state.Z)), d.uint64()
	if d.short {
		return errTruncated
	}
	if !(f.lift >= 1 && f.lift <= liftMax) {
		return fmt.Errorf("bar at %v of the least, want 1 to %v", f.lift, liftMax)
	}
	if n != uint64(view.Vertices()) || len(state.R) != len(state.Z) {
		return fmt.Errorf("%d values and %d residuals, the graph has %d vertices", n, len(state.R), view.Vertices())
	}
	if sources > n || uint64(len(d.rest)) != 12*sources {
		return errTruncated
	}
	f.grow(int(n))
	f.blank = false
	copy(f.z, state.Z)
	copy(f.r, state.R)
	for v := range f.d {
		f.d[v] = view.Degree(Vertex(v)) + 1
	}
	return f.decodeSources(&d, sources)
}

// decoder takes values off the front of bytes; past their end it gives zeros.
type decoder struct {
	rest  []byte
	short bool // more was taken than there is
}

func (d *decoder) take(n int) []byte {
	if len(d.rest) < n {
		d.rest, d.short = nil, true
		return nil
	}
	b := d.rest[:n]
	d.rest = d.rest[n:]
	return b
}

func (d *decoder) uint64() uint64 {
	if b := d.take(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

func (d *decoder) uint32() uint32 {
	if b := d.take(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

// numbers reads what appendNumbers appends.
func (d *decoder) numbers(scalars []*float64, work *Work) {
	for _, x := range scalars {
		*x = d.float()
	}
	for _, x := range work.counters() {
		*x = d.uint64()
	}
}

func (d *decoder) float() float64 { return math.Float64frombits(d.uint64()) }
