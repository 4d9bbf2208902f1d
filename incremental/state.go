package incremental

import (
	"bytes"
	"encoding/json"
	"fmt"

	"gqlstream/graphstore"
	"gqlstream/incremental/diffusion"
	"gqlstream/incremental/neighborhood"
	"gqlstream/incremental/tally"
	"gqlstream/ingest/event"
	"gqlstream/quant"
)

// Section is a part of a core's state: an Arrow IPC file, but for core.json and
// classifier.bin.
type Section struct {
	Name string
	Data []byte
}

const (
	coreSection  = "core.json"
	tableSuffix  = ".arrow"
	fieldPattern = "field-%05d.arrow" // by community

	classifierSection = "classifier.bin" // of diffusion
)

// coreState is what a core holds besides its graph and its kernels. Neighbourhood
// sums and tallies are not in it: they are exact functions of the graph and of the
// kernels, and counting them anew gives the same bits.
type coreState struct {
	Position    event.Position   `json:"position"`
	Time        event.Time       `json:"time"`
	Warm        bool             `json:"warm"`
	Communities []communityState `json:"communities"`
}

type communityState struct {
	Name      string            `json:"name"`
	Progress  tally.Progress    `json:"progress"`        // since its last estimate
	Field     []byte            `json:"field,omitempty"` // of the field, beside its vectors
	Published []*quant.Snapshot `json:"published,omitempty"`
	Version   uint32            `json:"version"` // model version of the last estimates
}

// Save returns the state of the core as it is after a step whose Result.Vacuumed
// is set: then a restored core and one that never stopped hold the same bytes. The
// sections are copies and may be written while the core goes on.
func (c *Core) Save() ([]Section, error) { return c.sections(c.store.Sections()) }

// Sections returns the state as it stands after any step, to compare it with
// another. Unlike Save it leaves the core alone; where Save is allowed both return
// the same bytes.
func (c *Core) Sections() ([]Section, error) { return c.sections(c.store.View().Sections()) }

func (c *Core) sections(tables []graphstore.Section) ([]Section, error) {
	var sections []Section
	add := func(name string, write func(*bytes.Buffer) error) error {
		var data bytes.Buffer
		err := write(&data)
		sections = append(sections, Section{name, data.Bytes()})
		return err
	}
	for _, table := range tables {
		err := add(string(table.Table)+tableSuffix, func(w *bytes.Buffer) error {
			_, err := table.WriteTo(w)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("incremental: save: %w", err)
		}
	}
	state := coreState{Position: c.position, Time: c.time, Warm: c.warm}
	for id, k := range c.kernels {
		community := communityState{
			Name: c.View().CommunityName(graphstore.Community(id)), Published: k.published,
			Version: k.version, Progress: c.tallies.Progress(graphstore.Community(id)),
		}
		if k.field != nil {
			vectors := k.field.State()
			community.Field = vectors.Rest
			err := add(fmt.Sprintf(fieldPattern, id), func(w *bytes.Buffer) error {
				return graphstore.WriteFloats(w, []graphstore.Floats{{Name: "z", Values: vectors.Z}, {Name: "r", Values: vectors.R}})
			})
			if err != nil {
				return nil, fmt.Errorf("incremental: save: %w", err)
			}
		}
		state.Communities = append(state.Communities, community)
	}
	if c.walks != nil {
		err := add(classifierSection, func(w *bytes.Buffer) error {
			data, err := c.walks.AppendBinary(nil)
			w.Write(data)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("incremental: save: %w", err)
		}
	}
	err := add(coreSection, func(w *bytes.Buffer) error { return json.NewEncoder(w).Encode(state) })
	if err != nil {
		return nil, fmt.Errorf("incremental: save: %w", err)
	}
	return sections, nil
}

// Restore returns the core whose state the sections are; their checksums have been
// verified. The configuration must have the digest of the one that saved them.
// From then on the core gives the same bits as one that never stopped.
func Restore(config Config, sections map[string][]byte) (*Core, error) {
	c, err := New(config)
	if err != nil {
		return nil, err
	}
	if err := c.restore(sections); err != nil {
		c.Close()
		return nil, fmt.Errorf("incremental: restore: %w", err)
	}
	return c, nil
}

func (c *Core) restore(sections map[string][]byte) error {
	var state coreState
	if err := json.Unmarshal(sections[coreSection], &state); err != nil {
		return fmt.Errorf("section %s: %w", coreSection, err)
	}
	store, err := graphstore.Load(c.config.store(), func(t graphstore.Table) ([]byte, error) {
		data, ok := sections[string(t)+tableSuffix]
		if !ok {
			return nil, fmt.Errorf("section %s%s is missing", t, tableSuffix)
		}
		return data, nil
	})
	if err != nil {
		return err
	}
	c.store.Release()
	c.store = store
	c.position, c.time, c.warm = state.Position, state.Time, state.Warm
	view := store.View()
	families := c.config.families()
	if c.warm {
		if err := c.restoreClassifier(view, sections[classifierSection]); err != nil {
			return err
		}
	}
	c.sums = neighborhood.Recount(view, c.config.Classes, families.NeedsHardVotes(), c.heard(view)...)
	if !c.warm {
		return nil
	}
	if len(state.Communities) != view.Communities() {
		return fmt.Errorf("kernels of %d communities, the graph has %d", len(state.Communities), view.Communities())
	}
	c.tallies.Rebuild(view, c.sums)
	for id, community := range state.Communities {
		if err := c.restoreCommunity(graphstore.Community(id), community, view, sections); err != nil {
			return fmt.Errorf("community %s: %w", community.Name, err)
		}
	}
	return nil
}

func (c *Core) restoreCommunity(id graphstore.Community, state communityState, view graphstore.View, sections map[string][]byte) error {
	k := c.newKernel()
	k.published, k.version = state.Published, state.Version
	c.kernels = append(c.kernels, k)
	defer c.tallies.SetProgress(id, state.Progress) // counting anew is no progress
	if k.field == nil {
		return nil // recomputed at the next emission
	}
	columns, err := graphstore.ReadFloats(sections[fmt.Sprintf(fieldPattern, id)], "z", "r")
	if err != nil {
		return err
	}
	k.field, err = diffusion.RestoreField(c.config.diffusion(), view, diffusion.State{
		Z: columns[0].Values, R: columns[1].Values, Rest: state.Field,
	})
	if err != nil {
		return err
	}
	c.tallies.RebuildKernel(id, view, c.sums, k.mass)
	return nil
}
