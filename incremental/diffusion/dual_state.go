package diffusion

import (
	"encoding/binary"
	"fmt"
	"math"

	"gqlstream/graphstore"
)

// AppendBinary appends all of the dual that a later Update depends on, so that a
// restored dual goes on with the same bits, as Field.AppendBinary does. 16 L + 8
// bytes a vertex, and 4 + 8 L for every vertex with a value. The error is always nil.
func (g *Dual) AppendBinary(b []byte) ([]byte, error) {
	b = append(b, stateVersion, asByte(g.stale), 1, 0) // scan: see RestoreDual
	b = appendNumbers(b, g.scalars(), &g.work)
	for _, n := range []int{len(g.rows), g.l, len(g.f) / g.l} {
		b = binary.LittleEndian.AppendUint64(b, uint64(n))
	}
	for v := range g.rows {
		_, r := g.residuals(Vertex(v))
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(g.most[v]))
		for i, y := range g.Values(Vertex(v)) {
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(y))
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(r[i]))
		}
	}
	for v, row := range g.rows {
		if row == 0 {
			continue
		}
		b = binary.LittleEndian.AppendUint32(b, uint32(v))
		for _, x := range g.Function(Vertex(v)) {
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(x))
		}
	}
	return b, nil
}

func (g *Dual) scalars() []*float64 {
	return []*float64{&g.keep, &g.peak, &g.degreeSum, &g.bound, &g.rounding, &g.floor, &g.pace}
}

// RestoreDual makes the dual whose binary form is data and whose graph, at that
// time, is view. The tolerance may differ from the one it was kept to; alpha and
// the number of functions may not. It trusts no length in data and does not keep it.
func RestoreDual(config DualConfig, view graphstore.View, data []byte) (*Dual, error) {
	g, err := NewDual(config)
	if err != nil {
		return nil, err
	}
	keep := g.keep
	if err := g.decode(view, data); err != nil {
		return nil, fmt.Errorf("diffusion: restore dual: %w", err)
	}
	if g.keep != keep {
		return nil, fmt.Errorf("diffusion: restore dual: alpha was %v, is %v", 1-g.keep, 1-keep)
	}
	g.scan = true // the tolerance may have changed; costs no bits if it has not
	return g, nil
}

func (g *Dual) decode(view graphstore.View, data []byte) error {
	d := decoder{rest: data}
	head := d.take(4)
	if head == nil {
		return errTruncated
	}
	if head[0] != stateVersion {
		return fmt.Errorf("version %d, want %d", head[0], stateVersion)
	}
	g.stale = head[1] == 1
	d.numbers(g.scalars(), &g.work)
	n, functions, rows := d.uint64(), d.uint64(), d.uint64()
	if d.short {
		return errTruncated
	}
	if n != uint64(view.Vertices()) || functions != uint64(g.l) {
		return fmt.Errorf("%d functions of %d vertices, want %d of %d", functions, n, g.l, view.Vertices())
	}
	if rows > n || uint64(len(d.rest)) != n*(8+16*functions)+rows*(4+8*functions) {
		return errTruncated
	}
	g.grow(int(n))
	for v := range g.rows {
		g.cells[v*g.stride] = view.Degree(Vertex(v)) + 1
		g.most[v] = d.float()
		_, r := g.residuals(Vertex(v))
		y := g.Values(Vertex(v))
		for i := range y {
			y[i], r[i] = d.float(), d.float()
		}
	}
	return g.decodeFunctions(&d, rows)
}

func (g *Dual) decodeFunctions(d *decoder, rows uint64) error {
	g.f = make([]float64, rows*uint64(g.l))
	for row := range rows {
		v := d.uint32()
		if uint64(v) >= uint64(len(g.rows)) || g.rows[v] != 0 {
			return fmt.Errorf("value at vertex %d of %d", v, len(g.rows))
		}
		g.rows[v] = uint32(row) + 1
		f := g.Function(Vertex(v))
		for i := range f {
			f[i] = d.float()
		}
	}
	return nil
}
