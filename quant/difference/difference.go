// Package difference folds records into those of differences: by how much one community
// exceeds another, under the name "difference(a, b)", with its own error and interval.
//
// A Fold keeps the newest records of the communities that it is about, and gives a difference
// at each emission with a new record of either, by each method that both have. The records
// are quant.Difference's, as are those of the page, the API and watch. Where one of both is
// suppressed, so is the difference. The movement of a difference is that in the new records of a
// less that in those of b.
//
// A Fold is plain data, and its JSON its state. Cost: O(differences) for each record.
package difference

import (
	"math"
	"slices"
	"strings"

	"gqlstream/quant"
)

const opening = "difference("

// Cut returns the text before and after a difference, and the difference as its records name it;
// name is empty if there is none. The first comma ends the first name.
func Cut(text string) (before, name, after string) {
	from, to := strings.Index(text, opening), strings.LastIndexByte(text, ')')
	if from >= 0 && to > from {
		a, b, _ := strings.Cut(text[from+len(opening):to], ",")
		if a, b = strings.TrimSpace(a), strings.TrimSpace(b); a != b && a != "" && b != "" {
			return strings.TrimSpace(text[:from]), opening + a + ", " + b + ")", text[to+1:]
		}
	}
	return text, "", ""
}

// Is reports whether a community is a difference.
func Is(community string) bool {
	_, name, _ := Cut(community)
	return community != "" && name == community
}

// Sides returns the two communities of a difference; ok is false if the community is none.
func Sides(community string) (a, b string, ok bool) {
	if !Is(community) {
		return "", "", false
	}
	a, b, ok = strings.Cut(strings.TrimSuffix(community, ")")[len(opening):], ", ")
	return a, b, ok
}

// Fold is the state of some differences.
type Fold []*Entry

// Entry is one difference, and the newest records of its two communities, by method.
type Entry struct {
	Name   string              `json:"name"`
	Newest [2][]quant.Estimate `json:"newest"`
}

// Want adds a difference, with the records that another fold has of it, unless it is wanted already
// or no difference.
func (f *Fold) Want(name string, known Fold) {
	is := func(p *Entry) bool { return p.Name == name }
	if !Is(name) || slices.ContainsFunc(*f, is) {
		return
	}
	if at := slices.IndexFunc(known, is); at >= 0 {
		*f = append(*f, known[at])
		return
	}
	*f = append(*f, &Entry{Name: name})
}

// Take returns the differences that the records of an emission change, as they were wanted.
func (f Fold) Take(records []quant.Estimate) (out []quant.Estimate) {
	for _, p := range f {
		a, b, _ := Sides(p.Name)
		var fresh [2][]*quant.Estimate
		for i := range records {
			for side, name := range []string{a, b} {
				if e := &records[i]; e.Community == name && p.setSide(side, e) {
					fresh[side] = append(fresh[side], e)
				}
			}
		}
		if len(fresh[0])+len(fresh[1]) > 0 {
			out = append(out, p.differences(fresh)...)
		}
	}
	return out
}

// setSide makes a record the newest of a side, unless its method is configured twice and the
// first was taken. A suppressed record has no method and stands for all.
func (p *Entry) setSide(side int, e *quant.Estimate) bool {
	again := func(had quant.Estimate) bool {
		return had.Position == e.Position && had.Method == e.Method
	}
	if slices.ContainsFunc(p.Newest[side], again) {
		return false
	}
	stale := func(had quant.Estimate) bool {
		return e.Suppressed || had.Suppressed || had.Method == e.Method
	}
	p.Newest[side] = append(slices.DeleteFunc(p.Newest[side], stale), *e)
	return true
}

func (p *Entry) differences(fresh [2][]*quant.Estimate) (out []quant.Estimate) {
	for i := range p.Newest[0] {
		for j := range p.Newest[1] {
			a, b := &p.Newest[0][i], &p.Newest[1][j]
			if a.Suppressed || b.Suppressed {
				if a.Position < b.Position {
					a = b
				}
				return []quant.Estimate{
					{
						Community:  p.Name,
						Position:   a.Position,
						Time:       a.Time,
						Flags:      []string{},
						Suppressed: true,
					},
				}
			}
			if d, err := quant.Difference(a, b); err == nil {
				divideChange(&d, fresh)
				out = append(out, d)
			}
		}
	}
	return out
}

// divideChange writes how far a difference moved and was revised, from the new records of both
// communities. A record without these figures, as a first one, leaves them out.
func divideChange(d *quant.Estimate, fresh [2][]*quant.Estimate) {
	k := len(d.Prevalence)
	moved, seMoved := make([]float64, k), make([]float64, k)
	revised, seRevised := make([]float64, k), make([]float64, k)
	for side, list := range fresh {
		sign := 1 - 2*float64(side)
		for _, e := range list {
			if e.Method != d.Method {
				continue
			}
			if len(e.Moved) != k || len(e.SEChange) != k || len(e.Revised) != k ||
				len(e.SERevised) != k {
				d.Counted, d.SECounted = nil, nil
				return
			}
			if len(e.Counted) == k && len(e.SECounted) == k {
				count(d, e, sign)
			}
			for i := range k {
				moved[i] += sign * e.Moved[i]
				revised[i] += sign * e.Revised[i]
				seMoved[i] = math.Hypot(seMoved[i], e.SEChange[i])
				seRevised[i] = math.Hypot(seRevised[i], e.SERevised[i])
			}
		}
	}
	d.Moved, d.SEChange, d.Revised, d.SERevised = moved, seMoved, revised, seRevised
}

// count adds by how much the count of one community moved.
func count(d, e *quant.Estimate, sign float64) {
	if d.Counted == nil {
		d.Counted, d.SECounted = make([]float64, len(e.Counted)), make([]float64, len(e.Counted))
	}
	for i, x := range e.Counted {
		d.Counted[i] += sign * x
		d.SECounted[i] = math.Hypot(d.SECounted[i], e.SECounted[i])
	}
}
