package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"strconv"
	"strings"

	"gqlstream/graphstore"
	"gqlstream/incremental"
	"gqlstream/incremental/diffusion"
	"gqlstream/ingest"
	"gqlstream/ingest/event"
	"gqlstream/pipeline/config"
	"gqlstream/quant"
	"gqlstream/quant/stats"
)

type estimateCmd struct {
	fileFlags
	refusedFlags
	settingsFlags
	Format string `default:"table" enum:"table,json" help:"${estimate_format}"`
}

func (*estimateCmd) Help() string {
	return `Prints one estimate for each community and method. Without --classes the columns of the
predictions name the classes: p_left,p_right, or 0 to K-1 with the columns p0 to p{K-1}. No privacy
floor applies. --classifier makes missing predictions from labels and edges. --config tries
definitions of communities on files; see docs/communities.md.

Examples:
  gqlstream estimate --edges edges.csv.gz --labels labels.csv --predictions predictions.csv \
      --members members.csv
  gqlstream estimate --edges e.parquet --labels l.csv --predictions p.csv --everyone \
      --method all --format json
  gqlstream estimate --edges e.csv --labels l.csv --members m.csv --classes left,right \
      --classifier diffusion
  gqlstream estimate --edges e.csv --labels l.csv --predictions p.csv --vertices v.csv \
      --config rules.yaml`
}

// settingsFlags are a configuration and the flags that override it, for commands without a
// pipeline.
type settingsFlags struct {
	Config string `short:"c" type:"existingfile" placeholder:"FILE" help:"${settings_config}"`
	config.ResultFlags
}

// read reads the configuration, and merges the flags over it.
func (f *settingsFlags) read() (config.Settings, error) {
	c, err := config.Load(f.Config)
	if err == nil {
		err = f.Merge(&c)
	}
	return c, err
}

// toleranceOneShot is the certificate of one-shot estimates.
const toleranceOneShot = 1e-6

// Run estimates once.
func (c *estimateCmd) Run(ctx context.Context, con console) error {
	if !c.any() {
		return config.Usagef(
			"estimate: no files; give --edges, --labels, --predictions and --members, or --log")
	}
	settings, err := c.read()
	if err != nil {
		return err
	}
	setOneShotDefaults(&settings)
	late, err := settings.Late.Policy()
	if err != nil {
		return config.Usage(err)
	}
	core, estimates, err := c.drain(ctx, &settings, ingest.StepConfig{Every: -1, Late: late},
		&c.refusedFlags, con)
	if err != nil {
		return err
	}
	defer core.Close()
	if settings.Kernel == diffusion.Features {
		if err := diffusion.CheckFeatures(core.View()); err != nil {
			return config.Usage(err)
		}
	}
	warnOfRules(con.Err, core.View())
	if len(estimates) == 0 {
		return config.Usagef(
			"estimate: no community; give --members FILE, --config FILE, --everyone or " +
				"--community NAME=KEY:VALUE")
	}
	c.sayAttributes(con.Err, core, settings.Evidence.Attributes)
	if c.Format == "json" {
		return writeLines(con.Out, estimates)
	}
	err = writeTable(con.Out, estimates, settings.Classes)
	if !c.Quiet {
		explainFlags(con.Err, estimates)
	}
	return err
}

// sayAttributes prints the attributes that auto reads, and a warning for each configured one that
// it does not read.
func (c *estimateCmd) sayAttributes(w io.Writer, core *incremental.Core, named []string) {
	e := core.Coefficients()
	if e == nil {
		return
	}
	if len(e.Features) > 0 && !c.Quiet {
		fmt.Fprintf(w, "auto reads the attributes %s\n", strings.Join(e.Attributes(), ", "))
	}
	for _, key := range named {
		if key != graphstore.EveryAttribute && !e.Reads(key) {
			fmt.Fprintf(w, "warning: evidence.attributes: auto does not read %q: too few vertices "+
				"or labels have it, it has no frequent values, or labels are old\n", key)
		}
	}
}

// setOneShotDefaults fills in the defaults of a single computation on the user's own files: a tight
// certificate, no privacy floor, the kernel of the preset, and all attributes.
func setOneShotDefaults(c *config.Settings) {
	none := 0
	c.Privacy.MembersMin = &none
	c.Tolerance = cmp.Or(c.Tolerance, toleranceOneShot)
	if c.Evidence.Attributes == nil {
		c.Evidence.Attributes = []string{graphstore.EveryAttribute}
	}
	if c.Kernel == "" && len(c.Estimates) > 0 {
		switch stats.Preset(c.Estimates[0].Preset) {
		case stats.Reference:
			c.Kernel = "truncated"
		case stats.Paper:
			c.Kernel = "lazy"
		}
	}
}

// drain runs files through a core, and returns it with the last estimates.
func (f *fileFlags) drain(
	ctx context.Context, settings *config.Settings, steps ingest.StepConfig, limit *refusedFlags,
	con console,
) (core *incremental.Core, estimates []quant.Estimate, err error) {
	source, err := f.openFiles(con, settings, steps)
	if err != nil {
		return nil, nil, err
	}
	defer source.Close()
	conf, err := settings.Core()
	if err != nil {
		return nil, nil, err
	}
	conf.Patient = true
	if core, err = incremental.New(conf); err != nil {
		return nil, nil, config.Usage(err)
	}
	latest := map[string][]quant.Estimate{}
	err = errors.Join(limit.readFiles(
		ctx,
		source,
		newMeter(con.Err, "events read"),
		func(b *event.Batch) ([]event.Refusal, error) {
			result := core.Step(b)
			emitted := map[string][]quant.Estimate{}
			for _, e := range result.Estimates {
				emitted[e.Community] = append(emitted[e.Community], e)
			}
			maps.Copy(latest, emitted)
			return result.Refused, nil
		},
	))
	if err != nil {
		core.Close()
		return nil, nil, err
	}
	for _, name := range core.View().CommunityNames() {
		estimates = append(estimates, latest[name]...)
	}
	return core, estimates, nil
}

func writeLines[T any](w io.Writer, list []T) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false) // as a run writes them
	for i := range list {
		if err := encoder.Encode(&list[i]); err != nil {
			return err
		}
	}
	return nil
}

// classesShown bounds the classes of one estimate in a table for people.
const classesShown = 6

// writeTable writes estimates for people: a column for each class, the interval in
// brackets. Where there are too many for a line, those with the largest shares are named.
func writeTable(w io.Writer, estimates []quant.Estimate, classes []string) error {
	t := newTable(w)
	heads := classes
	if len(classes) > classesShown {
		heads = []string{
			"largest of " + strconv.Itoa(len(classes)),
			"classes",
			"(--format json has all)",
		}
	}
	fmt.Fprintf(t, "community\tmethod\tmembers\t%s\tflags\n", strings.Join(heads, "\t"))
	for _, e := range estimates {
		fmt.Fprintf(t, "%s\t%s\t%g", e.Community, e.Method, e.Members)
		shown := mostMoved(e.Prevalence, len(heads))
		for _, k := range shown {
			if fmt.Fprint(t, "\t"); len(classes) > classesShown {
				fmt.Fprint(t, classes[k], ": ")
			}
			fmt.Fprintf(t, "%.3f", e.Prevalence[k])
			if len(e.Low) > k {
				fmt.Fprintf(t, " [%.3f, %.3f]", e.Low[k], e.High[k])
			}
		}
		fmt.Fprintf(t, "\t%s\n", strings.Join(namedFlags(e.Flags, classes), " "))
	}
	return t.Flush()
}

// namedFlags returns flags with the names of classes in place of their indices.
func namedFlags(flags, classes []string) []string {
	named := make([]string, len(flags))
	for i, flag := range flags {
		name, detail, _ := strings.Cut(flag, ":")
		for j, part := range strings.FieldsFunc(detail,
			func(r rune) bool { return r == ',' || r == '~' }) {
			separator := ","
			if j == 0 {
				separator = ":"
			} else if strings.Contains(detail, "~") {
				separator = "~"
			}
			if k, err := strconv.Atoi(part); err == nil && k < len(classes) {
				part = classes[k]
			}
			name += separator + part
		}
		named[i] = name
	}
	return named
}

// explainFlags prints the meaning and remedy of each flag once.
func explainFlags(w io.Writer, estimates []quant.Estimate) {
	seen := map[string]bool{}
	for _, e := range estimates {
		for _, flag := range e.Flags {
			seen[quant.FlagName(flag)] = true
		}
	}
	for _, doc := range quant.FlagDocs() {
		if seen[doc.Name] {
			fmt.Fprintf(w, "flag %s: %s. To do: %s\n", doc.Name, doc.Meaning, doc.Action)
		}
	}
}

// otherAttributes lists attributes that a rule could have meant.
func otherAttributes(view graphstore.View, rule graphstore.Rule) string {
	for v := range graphstore.Vertex(view.Vertices()) {
		switch x := view.Attribute(v, rule.Key); x.Kind {
		case event.NullValue:
			continue
		case rule.Value.Kind:
			return ""
		case event.StringValue:
			return fmt.Sprintf(": %s is text, such as %q", rule.Key, x.Text)
		case event.BoolValue:
			return fmt.Sprintf(": %s is true or false", rule.Key)
		default:
			return fmt.Sprintf(": %s is a number, such as %g", rule.Key, x.Number)
		}
	}
	return ": " + event.Nearest(rule.Key, view.AttributeKeys())
}

// warnOfRules warns of communities with doubtful members: their rules met
// values that they cannot compare, or they are ego networks that were cut short or have no root.
func warnOfRules(w io.Writer, view graphstore.View) {
	for c := range graphstore.Community(view.Communities()) {
		rule := view.Rule(c)
		list, _ := view.Members(c)
		if n := view.Mismatches(c); n > 0 {
			fmt.Fprintf(w,
				"warning: community %q: the rule found %d values of another type than it "+
					"compares with\n",
				rule.Name, n)
		}
		switch {
		case rule.Kind == graphstore.Ego && len(list) == 0:
			fmt.Fprintf(w, "warning: community %q: no vertex is named %s\n", rule.Name, rule.Root)
		case rule.Kind == graphstore.Ego && view.Hops(c) < rule.Hops:
			fmt.Fprintf(w,
				"warning: community %q is cut to %d of its %d hops: one more hop would exceed "+
					"members_max\n",
				rule.Name, view.Hops(c), rule.Hops)
		case rule.Kind == graphstore.ByExpression && len(list) == 0:
			fmt.Fprintf(w, "warning: community %q: the rule holds for no vertex\n", rule.Name)
		case rule.Kind == graphstore.ByAttribute && len(list) == 0:
			fmt.Fprintf(w, "warning: community %q: no vertex has %v%s\n", rule.Name, rule,
				otherAttributes(view, rule))
		}
	}
}
