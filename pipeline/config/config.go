package config

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"gqlstream/graphstore"
	"gqlstream/incremental"
	"gqlstream/ingest"
	"gqlstream/ingest/broker"
	"gqlstream/ingest/event"
	"gqlstream/quant"
	"gqlstream/quant/stats"
	"gqlstream/sinks"
	"gqlstream/sinks/alerts"
	"gqlstream/sinks/notify"
	"gqlstream/sinks/web"
)

// Settings is the YAML configuration of `run`, `replay`, `estimate` and others. Every
// field has a default except classes. Flags of the same name win over the file.
type Settings struct {
	Pipeline    string             `yaml:"pipeline"`
	Classes     Classes            `yaml:"classes"`
	Communities []Community        `yaml:"communities"`
	Estimates   []Estimate         `yaml:"estimates"`
	Classifier  string             `yaml:"classifier"`
	HalfLife    time.Duration      `yaml:"label_half_life"`
	Labels      Labels             `yaml:"labels"`
	Kernel      string             `yaml:"kernel"`
	Alpha       float64            `yaml:"alpha"`
	Tolerance   float64            `yaml:"tolerance"`
	Models      incremental.Models `yaml:"models"`
	Step        Step               `yaml:"step"`
	Emit        Emit               `yaml:"emit"`
	Windows     graphstore.Windows `yaml:"windows"`

	Evidence   graphstore.EvidenceConfig `yaml:"evidence"`
	Late       Late                      `yaml:"late"`
	Control    Control                   `yaml:"control"`
	Privacy    Privacy                   `yaml:"privacy"`
	Limits     event.Limits              `yaml:"limits"`
	State      string                    `yaml:"state"`
	Checkpoint Checkpoint                `yaml:"checkpoint"`
	Log        Log                       `yaml:"log"`
	NATS       NATS                      `yaml:"nats"`
	Group      Group                     `yaml:"group"`
	Output     Output                    `yaml:"output"`
	HTTP       web.HTTP                  `yaml:"http"`
	Display    alerts.Display            `yaml:"display"`
	Alerts     Alerts                    `yaml:"alerts"`
	Notify     notify.Config             `yaml:"notify"`
}

// Classes is a list of class names, or a number of classes named 0, 1, ...
type Classes []string

// UnmarshalYAML reads a list of names, or a number.
func (c *Classes) UnmarshalYAML(data []byte) error {
	var n int
	if err := yaml.Unmarshal(data, &n); err == nil {
		names, err := parseClasses(strconv.Itoa(n))
		*c = names
		return err
	}
	if err := yaml.Unmarshal(data, (*[]string)(c)); err != nil {
		return errors.New(
			"classes: want a list of names, or their number") // the library's error is less helpful
	}
	return nil
}

// parseClasses reads "3" or "left,right".
func parseClasses(text string) (Classes, error) {
	if n, err := strconv.Atoi(text); err == nil {
		if n < 1 || n > graphstore.ClassesMax {
			return nil, fmt.Errorf("classes: %d is not between 1 and %d", n, graphstore.ClassesMax)
		}
		names := make(Classes, n)
		for i := range names {
			names[i] = strconv.Itoa(i)
		}
		return names, nil
	}
	return strings.Split(text, ","), nil
}

// Community defines a tracked community.
type Community = incremental.CommunityDefinition

// Estimate configures one method; every community is estimated by it. See quant.Options.
type Estimate struct {
	Method       string  `yaml:"method"`
	Preset       string  `yaml:"preset"`
	Lambda       Lambda  `yaml:"lambda"`
	Confidence   float64 `yaml:"confidence"`
	Simultaneous bool    `yaml:"simultaneous"`
}

// Lambda is a number between 0 and 1, or auto; empty is the default.
type Lambda string

func (l Lambda) value() (float64, error) {
	switch l {
	case "":
		return stats.LambdaDefault, nil
	case "auto":
		return stats.LambdaAuto, nil
	}
	x, err := strconv.ParseFloat(string(l), 64)
	if err != nil || math.IsNaN(x) || x < 0 {
		return 0, fmt.Errorf("lambda: %q is neither a number between 0 and 1 nor auto", string(l))
	}
	return x, nil
}

// Step configures how the log is cut into steps; see ingest.StepConfig.
type Step struct {
	Every     time.Duration `yaml:"every"`
	EmitEvery time.Duration `yaml:"emit_every"`
	Time      string        `yaml:"time"`
}

// Emit decides which changes of an estimate are published; see incremental.Emit.
type Emit struct {
	Threshold    *float64      `yaml:"threshold"` // nil: thresholdDefault
	AtLeastEvery time.Duration `yaml:"at_least_every"`
}

// thresholdDefault is the smallest published change, in standard errors.
const thresholdDefault = 0.1

// Privacy decides which communities have no published estimates.
type Privacy struct {
	MembersMin *int `yaml:"min_members"`
	// published shares are multiples of this; 0: not rounded
	Round float64 `yaml:"round"`
}

// Checkpoint configures how often state is written. It counts in log time. It influences the last
// bits of results, so it is a part of the digest.
type Checkpoint struct {
	Every time.Duration `yaml:"every"` // 0: a minute; < 0: only where the log asks for one
}

// Log configures how long the log is kept.
type Log struct {
	Keep Keep `yaml:"keep"`
}

// Keep is a time, such as 720h, or a number of bytes; empty keeps everything.
type Keep string

// Limits returns the time or the bytes; both are 0 where everything is kept.
func (k Keep) Limits() (span time.Duration, bytes uint64, err error) {
	if k == "" {
		return 0, 0, nil
	}
	if bytes, err = strconv.ParseUint(string(k), 10, 64); err == nil && bytes > 0 {
		return 0, bytes, nil
	}
	if span, err = time.ParseDuration(string(k)); err != nil || span <= 0 {
		return 0, 0, fmt.Errorf(
			"log.keep: %q is neither a time, such as 720h, nor a number of bytes",
			string(k))
	}
	return span, 0, nil
}

// NATS names the server of the streams, and the prefix of their names.
type NATS struct {
	broker.ConnectConfig `yaml:",inline"` // no URL: the embedded server

	Replicas int    `yaml:"replicas"`      // 0: 3 on a cluster, else 1
	LogBytes int64  `yaml:"log_bytes_max"` // limit of a new log; 0: no limit
	Listen   string `yaml:"listen"`        // embedded: a port for producers on this host
	Prefix   string `yaml:"prefix"`        // of streams, subjects and the bucket; empty: gql
	GraphOf  string `yaml:"graph_of"`      // a new log copies the graph of the log with this prefix

	Answers Answers `yaml:"answers"`
}

// Answers configures answers to requests on NATS.
type Answers struct {
	// server for a separate user; empty: the same connection
	URL         string   `yaml:"url"`
	Credentials string   `yaml:"credentials"` // of that user; see broker.ConnectConfig
	Inboxes     []string `yaml:"inboxes"`     // prefixes of reply subjects; none: _INBOX
}

// Group configures how the workers of a group divide the communities.
type Group struct {
	Shards int `yaml:"shards"` // 0: 1; a part of the digest
	Copies int `yaml:"copies"` // workers that estimate each shard; 0: 1
}

// Output lists the optional followers of the output log. Alerts and the page always follow it.
type Output struct {
	File    string `yaml:"file"`    // JSON lines, "-" is standard output
	Parquet string `yaml:"parquet"` // directory of parts
	// log time in one part file; 0: sinks.PartEveryDefault
	Every time.Duration `yaml:"every"`
	// file of alert transitions, JSON lines
	Alerts string `yaml:"alerts"`
	// limit of the stream of estimates; 0: sinks.EstimatesBytesDefault
	StreamBytesMax int `yaml:"stream_bytes_max"`
}

// streamBytesMin is the least limit of the stream of estimates: some emissions.
const streamBytesMin = 1 << 20

// membersMinDefault is the privacy floor of `run`.
const membersMinDefault = 11

// Load reads a configuration file strictly: an unknown key is an error that
// names the line. An empty path gives the defaults.
func Load(path string) (Settings, error) {
	var c Settings
	if path == "" {
		return c, nil
	}
	return c, readStrictly(path, &c)
}

// Core returns the configuration of the core, with every violation reported.
func (c Settings) Core() (incremental.Config, error) {
	out := incremental.Config{
		Pipeline:     c.Pipeline,
		Classes:      len(c.Classes),
		Classifier:   c.Classifier,
		Kernel:       c.Kernel,
		Alpha:        c.Alpha,
		Tolerance:    c.Tolerance,
		MembersMin:   membersMinDefault,
		Limits:       c.Limits,
		CompactEvery: c.Checkpoint.Every,
		Windows:      c.Windows,
		Evidence:     c.Evidence,
		HalfLife:     c.HalfLife,
		LabelsDrawn:  c.Labels.Drawn,
		Models:       c.Models,
		Shards:       c.Group.Shards,
	}
	steps, stepsErr := c.Steps()
	out.Late, out.Cut, out.DenyConfigure = steps.Late, steps.Cut(), c.Control.Configure == "deny"
	out.Round = c.Privacy.Round
	if c.Privacy.MembersMin != nil {
		out.MembersMin = *c.Privacy.MembersMin
	}
	out.Emit = incremental.Emit{Threshold: thresholdDefault, AtLeastEvery: c.Emit.AtLeastEvery}
	if c.Emit.Threshold != nil {
		out.Emit.Threshold = *c.Emit.Threshold
	}
	_, _, keepErr := c.Log.Keep.Limits()
	errs := []error{stepsErr, keepErr}
	if can := c.Control.Configure; can != "" && can != "allow" && can != "deny" {
		errs = append(errs, fmt.Errorf("control.configure: %q is neither allow nor deny", can))
	}
	errs = append(errs, c.addCommunities(&out), c.addEstimates(&out))
	errs = append(errs, c.Output.validate())
	switch len(c.Classes) {
	default:
		errs = append(errs, c.Classes.ClassSet().Validate(), out.Validate())
	case 1:
		errs = append(errs, fmt.Errorf(
			"classes: %q alone leaves nothing to estimate; name the others too (--classes)",
			c.Classes[0]))
	case 0:
		errs = append(errs, errors.New(
			"classes: missing; give the names in order, or their number (--classes)"))
	}
	if err := errors.Join(errs...); err != nil {
		return out, Usage(err)
	}
	return out, nil
}

// addCommunities adds the rules of the configured communities and their kinds of selection.
func (c Settings) addCommunities(out *incremental.Config) error {
	var errs []error
	for _, community := range c.Communities {
		rule, err := community.Rule()
		errs = append(errs, err)
		out.Communities = append(out.Communities, rule)
		if by := community.Selection(); by != stats.ByEdges {
			if out.SelectedBy == nil {
				out.SelectedBy = map[string]stats.Selection{}
			}
			out.SelectedBy[community.Name] = by
		}
	}
	return errors.Join(errs...)
}

// addEstimates adds the options of the configured estimates.
func (c Settings) addEstimates(out *incremental.Config) error {
	var errs []error
	for i, e := range c.Estimates {
		options, err := e.options()
		if err != nil {
			errs = append(errs, fmt.Errorf("estimates[%d]: %w", i, err))
		}
		out.Estimates = append(out.Estimates, options)
	}
	return errors.Join(errs...)
}

func (e Estimate) options() (o quant.Options, err error) {
	o = quant.DefaultOptions()
	o.Method, o.Preset = cmp.Or(quant.Method(e.Method),
		o.Method), cmp.Or(stats.Preset(e.Preset), o.Preset)
	o.Confidence = cmp.Or(e.Confidence, o.Confidence)
	o.Simultaneous = e.Simultaneous
	o.Lambda, err = e.Lambda.value()
	return o, err
}

// FillDefaults fills in the defaults, as check prints them.
func (c *Settings) FillDefaults(core incremental.Config, steps ingest.StepConfig) {
	core, steps = core.WithDefaults(), steps.WithDefaults()
	c.Kernel = core.Kernel
	c.Alpha = core.Alpha
	c.Tolerance = core.Tolerance
	c.Privacy.MembersMin = &core.MembersMin
	c.Emit = Emit{&core.Emit.Threshold, core.Emit.AtLeastEvery}
	c.Models.SwitchAt = cmp.Or(core.Models.SwitchAt, graphstore.SwitchAtDefault)
	c.Step.Every, c.Step.EmitEvery = steps.Every, steps.EmitEvery
	c.NATS.Prefix = cmp.Or(c.NATS.Prefix, "gql")
	c.State = cmp.Or(c.State, StateDefault)
	c.Group.Shards, c.Group.Copies = cmp.Or(c.Group.Shards, 1), cmp.Or(c.Group.Copies, 1)
	c.HTTP.Listen = cmp.Or(c.HTTP.Listen, web.ListenDefault)
	if c.HTTP.MetricsCommunities == nil {
		c.HTTP.MetricsCommunities = new(web.MetricsCommunitiesDefault)
	}
	c.Checkpoint.Every = core.CompactEvery
	c.Output.Every = cmp.Or(c.Output.Every, sinks.PartEveryDefault)
	c.Step.Time = cmp.Or(c.Step.Time, "received")
	c.Late.Ahead = steps.Ahead
	c.Control.Configure = cmp.Or(c.Control.Configure, "allow")
	c.Output.StreamBytesMax = cmp.Or(c.Output.StreamBytesMax, sinks.EstimatesBytesDefault)
	c.Estimates = nil
	for _, o := range core.Estimates {
		lambda := Lambda(strconv.FormatFloat(o.Lambda, 'g', -1, 64))
		if o.Lambda == stats.LambdaAuto {
			lambda = "auto"
		}
		c.Estimates = append(c.Estimates, Estimate{
			Method: string(o.Method), Preset: string(o.Preset), Lambda: lambda,
			Confidence: o.Confidence, Simultaneous: o.Simultaneous,
		})
	}
}

// StateDefault is the state directory if none is given.
const StateDefault = "gqlstream-state"
