package files

import (
	"cmp"
	"io"
	"maps"
	"math"
	"slices"

	"gqlstream/ingest/event"
	"gqlstream/ingest/wire"
)

// Tally counts the rows of one file that were read and refused so far.
type Tally struct {
	Path    string
	Rows    int
	Refused int // rows that are wrong
	LeftOut int // self-loops, which every log of interactions has and which mean nothing here, and late rows
}

// inLogOrder sorts files by kind, logs last.
func inLogOrder(inputs []Input) []Input {
	rank := func(input Input) int {
		if input.Log {
			return len(tableKinds)
		}
		return slices.Index(tableKinds[:], input.Kind)
	}
	out := slices.Clone(inputs)
	slices.SortStableFunc(out, func(a, b Input) int { return cmp.Compare(rank(a), rank(b)) })
	return out
}

func (s *Source) open(input Input) (*fileStream, error) {
	// A decoder of its own: it has one owner, and its scratch memory is small.
	classes := s.config.Classes
	if classes.K() == 0 {
		classes.Count = 1 // no file speaks of classes
	}
	decoder, err := wire.NewDecoder(classes)
	if err != nil {
		return nil, err
	}
	rows, err := openRows(input, &s.config, decoder)
	if err != nil {
		return nil, err
	}
	in := &fileStream{rows: rows, keepOrder: input.Log || !rows.mayHaveTimes()}
	inOrder := in.keepOrder
	if !inOrder {
		inOrder, err = s.inTimeOrder(input, decoder)
	}
	if !inOrder && err == nil {
		err = in.loadSorted()
	}
	if err != nil {
		in.close()
		return nil, err
	}
	return in, nil
}

// inTimeOrder reads all rows of a table and reports whether no time is before an earlier one. The
// times of refused rows do not count.
func (s *Source) inTimeOrder(input Input, decoder *wire.Decoder) (bool, error) {
	rows, err := openRows(input, &s.config, decoder)
	if err != nil {
		return false, err
	}
	defer rows.file.Close()
	var b event.Batch
	for last := event.Time(math.MinInt64); ; {
		b.Reset()
		t, err := rows.next(&b)
		if err == io.EOF {
			return true, nil
		}
		if err != nil {
			return false, err
		}
		if len(b.Refused) > 0 {
			continue
		}
		if timeKey(t) < last {
			return false, nil
		}
		last = timeKey(t)
	}
}

// timeKey orders times: none is before all.
func timeKey(t event.Time) event.Time {
	if t == 0 {
		return math.MinInt64
	}
	return t
}

// peek returns the input whose head is the next row of the log, or io.EOF.
func (s *Source) peek() (*fileStream, error) {
	var first *fileStream
	for _, in := range s.inputs {
		if in.next == len(in.entries) {
			if err := in.fill(); err == io.EOF {
				continue
			} else if err != nil {
				return nil, err
			}
		}
		if first == nil || in.head().key < first.head().key {
			first = in
		}
	}
	if first == nil {
		return nil, io.EOF
	}
	return first, nil
}

// take moves the head of in to b.
func (s *Source) take(in *fileStream, b *event.Batch) {
	if e := in.head(); e.index < 0 {
		s.refuse(in, in.ahead.Refused[-1-e.index].Reason)
	}
	s.position++
	in.tally.Rows++
	in.next++
	in.moveTo(b, in.next-1, s.position)
}

// takeInTime does take, but for an event that comes late by a policy when the log's
// time is now: that one is counted, and refused if the policy says so.
func (s *Source) takeInTime(in *fileStream, b *event.Batch, now event.Time) {
	late := s.config.Steps.Late
	e := *in.head()
	var p *event.Problem
	if late.After > 0 && e.index >= 0 {
		if t := in.unit(0).Time; late.IsLate(e.kind, t, now) {
			p = late.Problem(b, e.kind, t, now)
		}
	}
	if p == nil {
		s.take(in, b)
		return
	}
	before := b.Mark()
	s.take(in, b)
	original := wire.AppendJSON(nil, b, e.kind, before.Count[e.kind])
	b.Rollback(before)
	s.refuse(in, p.Reason)
	b.Refused = append(b.Refused, event.Refusal{
		Position: s.position, Kind: e.kind, Reason: p.Reason, Detail: p.Detail(), Original: original,
	})
}

// refuse counts a refused row of in.
func (s *Source) refuse(in *fileStream, reason event.Reason) {
	s.refused[reason]++
	if reason == event.SelfLoop || reason == event.Late {
		in.tally.LeftOut++
	} else {
		in.tally.Refused++
	}
}

// Classes returns the label classes, as configured or inferred.
func (s *Source) Classes() event.ClassSet { return s.config.Classes }

// Refused returns the number of rows refused so far, by reason.
func (s *Source) Refused() map[event.Reason]int { return maps.Clone(s.refused) }

// Tallies returns the tally of each file.
func (s *Source) Tallies() []Tally {
	var all []Tally
	for _, in := range s.inputs {
		in.tally.Path = in.rows.input.Path
		all = append(all, in.tally)
	}
	return all
}

// Warnings lists, so far, the columns of the files that are ignored.
func (s *Source) Warnings() []string {
	var out []string
	for _, in := range s.inputs {
		if w := in.rows.warning(); w != "" {
			out = append(out, w)
		}
	}
	return out
}
