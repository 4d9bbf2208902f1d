package posterior

import (
	"cmp"
	"math"
	"slices"
	"sync"

	"gqlstream/graphstore"
	"gqlstream/incremental/neighborhood"
	"gqlstream/incremental/parallel"
)

const (
	// cellsPerClass is the number of cells that begin with each class; see cells.md of the notes:
	// with four the error of estimates is 4 % larger, with sixteen it is the same.
	cellsPerClass = 8
	// cellRounds is the number of rounds of Lloyd's algorithm.
	cellRounds = 6
	// cellSample is the number of open vertices, or up to twice as many, that centres are found
	// from.
	cellSample = 2048
	// meanUnit is the number 1 in the integer units of sums of posteriors; integer sums do not
	// depend on the order of the vertices.
	meanUnit = 1 << 32
)

// Cells divide the distributions over the classes into B kinds. A community is described by the
// number of its members in each cell. B is 8 K, and 16 for two classes. A vertex is in the cell
// with the centre nearest to its posterior, in Hellinger distance.
type Cells struct {
	Roots []float64 // B x K: centres, the square roots of distributions
	Means []float64 // B x K: mean posterior of the open vertices in each cell
	Views []float64 // B x V x K: mean views of the sampled vertices in each cell
}

// cellsOf returns the number of cells for a number of classes.
func cellsOf(classes int) int { return cellsPerClass * max(classes, 2) }

// newCells finds the centres for a sample of posteriors, n x K: the largest class times the
// quantiles of its probability, then rounds of Lloyd's algorithm (1982) on square roots.
func newCells(sample []float64, classes int) *Cells {
	b := cellsOf(classes)
	c := &Cells{Roots: make([]float64, b*classes), Means: make([]float64, b*classes)}
	c.grid(sample, classes)
	in, counts := make([]int, len(sample)/max(classes, 1)), make([]float64, b)
	roots := make([]float64, len(sample))
	for i, p := range sample {
		roots[i] = math.Sqrt(p)
	}
	for range cellRounds {
		for n := range in {
			in[n] = c.nearest(sample[n*classes:(n+1)*classes], roots[n*classes:(n+1)*classes])
		}
		c.centre(roots, in, counts, classes)
	}
	return c
}

// centre moves every centre to the mean of the roots in its cell. A cell without any keeps its own.
func (c *Cells) centre(roots []float64, in []int, counts []float64, classes int) {
	sums := make([]float64, len(c.Roots))
	clear(counts)
	for n, z := range in {
		add(sums[z*classes:(z+1)*classes], roots[n*classes:(n+1)*classes])
		counts[z]++
	}
	for z, n := range counts {
		if n > 0 {
			for i := z * classes; i < (z+1)*classes; i++ {
				c.Roots[i] = sums[i] / n
			}
		}
	}
}

// grid sets the first centres. The vertices with the same largest class are divided at the
// quantiles of its probability; two classes share all cells, divided by the probability of the
// second.
func (c *Cells) grid(sample []float64, classes int) {
	groups := make([][][]float64, classes) // posteriors by largest class
	if classes <= 2 {
		groups = groups[:1]
	}
	for p := range slices.Chunk(sample, classes) {
		at := 0
		if len(groups) > 1 {
			at, _ = largestTwo(p)
		}
		groups[at] = append(groups[at], p)
	}
	cells := cellsOf(classes) / len(groups)
	for class, list := range groups {
		by := class
		if classes == 2 {
			by = 1
		}
		slices.SortStableFunc(list, func(x, y []float64) int { return cmp.Compare(x[by], y[by]) })
		for j := range cells {
			root := c.Roots[(class*cells+j)*classes:][:classes]
			part := list[j*len(list)/cells : (j+1)*len(list)/cells]
			if len(part) == 0 {
				root[class] = 1
			}
			for _, p := range part {
				for i, x := range p {
					root[i] += math.Sqrt(x) / float64(len(part))
				}
			}
		}
	}
}

// largestTwo returns the classes of the largest and the second largest entry, the first of equals.
func largestTwo(p []float64) (first, second int) {
	second = -1
	for i, x := range p[1:] {
		switch i++; {
		case x > p[first]:
			first, second = i, first
		case second < 0 || x > p[second]:
			second = i
		}
	}
	return first, max(second, 0)
}

// nearest returns the cell of the posterior p, with the square roots root. It compares the cells
// that began with the two largest classes.
func (c *Cells) nearest(p, root []float64) (cell int) {
	k := len(p)
	if k <= 2 {
		return c.nearestOf(root, 0, len(c.Roots)/k, 0, math.Inf(1))
	}
	first, second := largestTwo(p)
	cell, far := first*cellsPerClass, math.Inf(1)
	cell = c.nearestOf(root, first*cellsPerClass, cellsPerClass, cell, far)
	far = c.distance(root, cell)
	return c.nearestOf(root, second*cellsPerClass, cellsPerClass, cell, far)
}

// nearestOf returns the nearest of n cells from one on, or this other cell if none is nearer than
// far.
func (c *Cells) nearestOf(root []float64, from, n, other int, far float64) int {
	for z := from; z < from+n; z++ {
		if d := c.distance(root, z); d < far {
			other, far = z, d
		}
	}
	return other
}

func (c *Cells) distance(root []float64, cell int) (squared float64) {
	k := len(root)
	for i, x := range c.Roots[cell*k : (cell+1)*k] {
		d := x - root[i]
		squared += float64(d * d)
	}
	return squared
}

// moved returns how far the mean posteriors of two cells are apart: half the sum of the absolute
// differences.
func (c *Cells) moved(from, to, classes int) (apart float64) {
	for i := range classes {
		apart += math.Abs(c.Means[from*classes+i]-c.Means[to*classes+i]) / 2
	}
	return apart
}

// makeCells finds the cells of an epoch, sorts all vertices with a prediction into them, and
// returns how many open vertices each has.
func (s *State) makeCells(view graphstore.View, sums *neighborhood.Sums) (open []uint64) {
	k, e := s.classes, s.epoch
	reader := s.Reader(view, sums)
	sampled := s.sampleOpen(view, cellSample)
	sample := make([]float64, len(sampled)*k)
	for i, v := range sampled {
		reader.Posterior(sample[i*k:(i+1)*k], v)
	}
	e.Cells = *newCells(sample, k)
	b := cellsOf(k)
	masses, open := make([]int64, b*k), make([]uint64, b)
	var lock sync.Mutex
	parallel.Ranges(view.Vertices(), func(from, to int) {
		reader, pi, root := s.Reader(view, sums), make([]float64, k), make([]float64, k)
		mass, counts := make([]int64, b*k), make([]uint64, b)
		for v := Vertex(from); v < Vertex(to); v++ {
			s.contributions[v] = contribution{}
			if !reader.Posterior(pi, v) {
				continue
			}
			z := e.cell(pi, root)
			s.contributions[v] = contribution{
				cell: uint16(z) + 1, top: topOf(view, v),
				open: s.openness(view, v), mass: s.massOf(view, v),
			}
			if isOpen(view, v) {
				counts[z]++
				for i, p := range pi {
					mass[z*k+i] += int64(float64(p*meanUnit) + 0.5)
				}
			}
		}
		lock.Lock()
		defer lock.Unlock()
		for i, x := range mass {
			masses[i] += x
		}
		for z, n := range counts {
			open[z] += n
		}
	})
	for z, n := range open {
		e.setMean(z, n, masses[z*k:(z+1)*k])
	}
	e.setViews(sampled, sample, reader)
	return open
}

// cell returns the cell of a posterior; root is scratch memory of as many numbers.
func (c *Cells) cell(pi, root []float64) int {
	for i, p := range pi {
		root[i] = math.Sqrt(p)
	}
	return c.nearest(pi, root)
}

// setMean sets the mean posterior of a cell to that of its open vertices, or to its centre.
func (c *Cells) setMean(z int, n uint64, mass []int64) {
	k := len(mass)
	mean, root := c.Means[z*k:(z+1)*k], c.Roots[z*k:(z+1)*k]
	for i := range mean {
		mean[i] = float64(mass[i])
		if n == 0 {
			mean[i] = max(root[i]*root[i], probabilityMin)
		}
	}
	scale := 1 / total(mean)
	for i := range mean {
		mean[i] *= scale
	}
}

// sampleOpen returns every n-th open vertex, at most as many as given.
func (s *State) sampleOpen(view graphstore.View, most int) (list []Vertex) {
	every, seen := s.inside.open/most+1, 0
	for v := range Vertex(view.Vertices()) {
		if !isOpen(view, v) {
			continue
		}
		if seen++; seen%every == 0 {
			list = append(list, v)
		}
	}
	return list
}

// setViews sets the mean views of every cell.
func (c *Cells) setViews(sampled []Vertex, sample []float64, reader *Reader) {
	k := reader.classes
	size := len(reader.coefficients.Theta) * k
	c.Views = make([]float64, len(c.Roots)/k*size)
	counts := make([]float64, len(c.Roots)/k)
	views := make([]float64, size)
	root := make([]float64, k)
	for n, v := range sampled {
		z := c.cell(sample[n*k:(n+1)*k], root)
		counts[z]++
		reader.Views(views, v)
		add(c.Views[z*size:(z+1)*size], views)
	}
	for z, n := range counts {
		if n > 0 {
			row := c.Views[z*size : (z+1)*size]
			for i := range row {
				row[i] /= n
			}
		}
	}
}
