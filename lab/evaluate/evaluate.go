package evaluate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gqlstream/incremental"
	"gqlstream/ingest/event"
	"gqlstream/quant/stats"
)

// Config configures an evaluation. The tags make fields flags of gqlstream evaluate.
type Config struct {
	Core incremental.Config `kong:"-"` // its communities are for the protocol members

	Protocols []string `name:"protocol" default:"pps,bfs,rw" placeholder:"LIST" help:"${shifts}"`

	Splits     int `default:"5" help:"${evaluate_splits} [${default}]"`
	PerClass   int `default:"10" help:"${evaluate_per_class} [${default}]"`
	Size       int `default:"100" help:"${evaluate_size} [${default}]"`
	MembersMin int `default:"11" help:"${evaluate_members_min} [${default}]"`

	Share float64 `name:"calibration" default:"0.15" help:"${calibration} [${default}]"`

	LabelDraw string `enum:"random,balanced,response" default:"random" help:"${draw} [${default}]"`

	Ask  int    `placeholder:"N" help:"${evaluate_ask}"`
	Seed uint64 `default:"1" help:"Seed of splits and draws. [${default}]"`
}

const (
	splitsMax   = 10_000
	perClassMax = 100_000
	sizeMax     = 10_000_000
)

// WithDefaults returns the configuration with the defaults of the core.
func (c Config) WithDefaults() Config {
	c.Core.MembersMin = 0
	c.Core = c.Core.WithDefaults()
	return c
}

// Validate reports every violation at once.
func (c Config) Validate() error {
	c = c.WithDefaults()
	errs := []error{c.Core.Validate()}
	if len(c.Protocols) == 0 {
		errs = append(errs, errors.New("protocols: none, nothing would be evaluated"))
	}
	for i, p := range c.Protocols {
		_, err := newProtocol(p)
		errs = append(errs, err, once("protocols", c.Protocols, i))
	}
	for _, bound := range []struct {
		name       string
		value, max int
	}{
		{"splits", c.Splits, splitsMax},
		{"per_class", c.PerClass, perClassMax},
		{"size", c.Size, sizeMax},
		{"members_min", c.MembersMin, c.Size},
	} {
		if bound.value < 1 || bound.value > bound.max {
			errs = append(errs,
				fmt.Errorf("%s: %d is not between 1 and %d", bound.name, bound.value, bound.max))
		}
	}
	if c.LabelDraw != "" && !slices.Contains(labelDraws, c.LabelDraw) {
		errs = append(errs, fmt.Errorf("label draw: %q is none of %v", c.LabelDraw, labelDraws))
	}
	if c.Ask < 0 || c.Ask > sizeMax {
		errs = append(errs, fmt.Errorf("ask: %d is not between 0 and %d", c.Ask, sizeMax))
	}
	if !(c.Share > 0 && c.Share < 1) {
		errs = append(errs, fmt.Errorf("calibration: %v is not between 0 and 1", c.Share))
	}
	return errors.Join(append(errs, c.checkMethods())...)
}

// once returns an error if the i-th name also stands earlier in the list.
func once(list string, names []string, i int) error {
	if slices.Contains(names[:i], names[i]) {
		return fmt.Errorf("%s: %q twice", list, names[i])
	}
	return nil
}

// checkMethods refuses methods if their rows in the report would coincide or could not be compared.
func (c Config) checkMethods() error {
	var errs []error
	var names []string
	for i, o := range c.Core.Estimates {
		names = append(names, string(o.Method))
		errs = append(errs, once("methods", names, i))
		if o.Confidence != c.Core.Estimates[0].Confidence ||
			o.Simultaneous != c.Core.Estimates[0].Simultaneous {
			errs = append(errs,
				fmt.Errorf("methods: %q has another kind of interval than the first", o.Method))
		}
	}
	return errors.Join(errs...)
}

// Load delivers the data from the beginning: every batch in order, each valid during the visit,
// which returns the events that the graph refuses. Those are left out.
type Load func(ctx context.Context, visit func(*event.Batch) ([]event.Refusal, error)) error

// Run evaluates. progress, when not nil, is told how many of all the communities are estimated.
func Run(
	ctx context.Context, config Config, load Load, progress func(done, all int),
) (*Report, error) {
	if err := config.Validate(); err != nil {
		return nil, fmt.Errorf("evaluate: %w", err)
	}
	config = config.WithDefaults()
	data, err := read(ctx, config, load)
	if err != nil {
		return nil, fmt.Errorf("evaluate: %w", err)
	}
	defer data.release()
	report := newReport(config, data)
	for split := range config.Splits {
		bags, calibration, err := data.draw(config, split)
		if err != nil {
			return nil, fmt.Errorf("evaluate: %w", err)
		}
		done := func(n int) {
			if progress != nil {
				progress(split*len(bags)+n, config.Splits*len(bags))
			}
		}
		if err := data.estimate(ctx, config, bags, calibration, done); err != nil {
			return nil, fmt.Errorf("evaluate: split %d: %w", split, err)
		}
		report.add(split, bags)
	}
	report.sumUp()
	return report, nil
}

// estimator returns the configuration of a core that estimates these communities, which are named
// by their index. How their members were selected is known where it is in a run: of vertices with
// one value of an attribute, and of tracked communities of which a definition says so.
func (c Config) estimator(bags []*bag) incremental.Config {
	core := c.Core
	core.Patient, core.Communities, core.SelectedBy = true, nil, map[string]stats.Selection{}
	for i, b := range bags {
		selected := stats.ByEdges
		if strings.HasPrefix(b.protocol, groupPrefix) {
			selected = stats.ByAttribute
		} else if name, tracked := strings.CutPrefix(b.name, members+"/"); tracked {
			selected = c.Core.SelectedBy[name]
		}
		if selected != stats.ByEdges {
			core.SelectedBy[strconv.Itoa(i)] = selected
		}
	}
	return core
}
