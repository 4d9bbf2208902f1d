package ask

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"path/filepath"
	"strconv"

	"gqlstream/graphstore"
	"gqlstream/incremental"
	"gqlstream/incremental/tally"
	"gqlstream/ingest/event"
	"gqlstream/internal/checkpoint"
	"gqlstream/internal/tables"
)

// Source is a graph to draw from, and the state of the core that estimates its communities.
type Source struct {
	View     graphstore.View
	Classes  event.ClassSet
	Position event.Position
	Sections map[string][]byte
}

// Load reads the graph of a verified checkpoint, and returns its number of classes.
func Load(c *checkpoint.Checkpoint) (store *graphstore.Store, classes int, err error) {
	section := func(t graphstore.Table) ([]byte, error) {
		data, ok := c.Sections[string(t)+".arrow"]
		if !ok {
			return nil, fmt.Errorf("there is no section %s", t)
		}
		return data, nil
	}
	classes, err = graphstore.ClassesOf(section)
	if err == nil {
		store, err = graphstore.Load(graphstore.Config{Classes: classes}, section)
	}
	if err != nil {
		return nil, 0, fmt.Errorf("checkpoint %d: %w", c.Manifest.Position, err)
	}
	return store, classes, nil
}

// Ask draws from the source, and names the classes in which calibration labels would help too.
func (s *Source) Ask(q Question) (*Answer, error) {
	q.Position, q.Shares = s.Position, map[string][]float64{}
	list, when := []Advice{}, []When{}
	for _, name := range q.Communities {
		id, known := s.View.FindCommunity(name)
		if !known {
			continue // Ask says so
		}
		snapshots, err := incremental.Snapshots(s.Sections, id)
		if err != nil {
			return nil, err
		}
		if len(snapshots) == 0 {
			continue
		}
		now, reason := whenOf(&snapshots[0])
		when = append(when, When{Community: name, Now: now, Reason: reason})
		if !snapshots[0].Solved {
			continue
		}
		q.Shares[name] = snapshots[0].Share
		if advice, ok := advise(&snapshots[0]); ok {
			advice.Community, advice.Name = name, s.Classes.Name(event.Class(advice.Class))
			list = append(list, advice)
		}
	}
	answer, err := Ask(s.View, s.Classes, q)
	if err != nil {
		return nil, err
	}
	answer.Advice, answer.When = list, when
	return answer, nil
}

// OfState draws from the newest checkpoint of a state directory. names are the names of the
// classes; others than K names are ignored. Under a privacy floor of 2 or more no vertex is named,
// and communities below it are refused. complete adds the shards of other workers of a group to the
// checkpoint; it may be nil.
func OfState(
	path string, names []string, floor int, complete func(*checkpoint.Checkpoint), q Question,
) (*Answer, error) {
	dir := checkpoint.Look(checkpoint.Disk{}, filepath.Join(path, "checkpoints"))
	var damage error
	read, err := dir.Load(func(err error) { damage = cmp.Or(damage, err) })
	if err == nil && read == nil {
		err = cmp.Or(
			damage,
			fmt.Errorf(
				"ask: no checkpoint in %s; run writes one every checkpoint.every, and at the end "+
					"of --exit-when-drained",
				path,
			),
		)
	}
	if err != nil {
		return nil, err
	}
	if complete != nil {
		complete(read)
	}
	store, k, err := Load(read)
	if err != nil {
		return nil, err
	}
	defer store.Release()
	s := &Source{
		store.View(),
		event.ClassSet{Count: k},
		event.Position(read.Manifest.Position),
		read.Sections,
	}
	if len(names) == k {
		s.Classes.Names = names
	}
	if read.Manifest.Derived != checkpoint.Derived {
		s.Sections = nil // of another version: the estimates in it are not read
	}
	if floor <= 1 {
		return s.Ask(q)
	}
	for _, name := range q.Communities {
		if id, known := s.View.FindCommunity(name); known &&
			incremental.TooFew(floor, s.known(id)) {
			return nil, fmt.Errorf("ask: %s is below the privacy floor of %d people", name, floor)
		}
	}
	answer, err := s.Ask(q)
	if err == nil {
		answer.Drawn = []Drawn{}
	}
	return answer, err
}

// known counts the members that have a label or a prediction, as the core's tallies do.
func (s *Source) known(id graphstore.Community) (k tally.Known) {
	s.View.ForMembers(id, func(v graphstore.Vertex, multiplicity uint32) {
		if s.View.Label(v).Class != event.NoClass || s.View.Prediction(v) != nil {
			m := float64(multiplicity)
			k.People, k.Sum, k.Squares = k.People+1, k.Sum+m, k.Squares+m*m
		}
	})
	return k
}

// WriteCSV writes the vertices as a file to fill in.
func (a *Answer) WriteCSV(w io.Writer) error {
	out := csv.NewWriter(w)
	// Error has it; files are read without Cell's mark
	_ = out.Write([]string{"vertex", "label", "role", "pi"})
	for _, d := range a.Drawn {
		label := ""
		if d.Label != nil {
			label = *d.Label
		}
		_ = out.Write(
			[]string{tables.Cell(d.Vertex), label, d.Role, strconv.FormatFloat(d.Pi, 'g', 6, 64)},
		)
	}
	out.Flush()
	return out.Error()
}
