package config

import (
	"cmp"
	"errors"
	"strings"
	"time"

	"gqlstream/ingest/event"
	"gqlstream/ingest/wire"
	"gqlstream/quant"
)

// ResultFlags are the flags that influence results; they override the file.
type ResultFlags struct {
	Classes      string        `placeholder:"LIST" help:"${results_classes}"`
	Everyone     bool          `help:"Track the community of every vertex, named everyone."`
	Community    []string      `sep:"none" placeholder:"NAME=KEY:VALUE" help:"${results_community}"`
	Method       string        `placeholder:"LIST" help:"${results_method}"`
	Preset       string        `placeholder:"NAME" help:"${results_preset}"`
	Confidence   *float64      `placeholder:"X" help:"Confidence level of the intervals. [0.9]"`
	Simultaneous bool          `help:"Intervals that hold together for all classes."`
	Lambda       string        `placeholder:"X" help:"${results_lambda}"`
	Classifier   string        `placeholder:"NAME" help:"${results_classifier}"`
	HalfLife     time.Duration `name:"label-half-life" placeholder:"DURATION" help:"${half_life}"`
	Kernel       string        `placeholder:"NAME" help:"${results_kernel}"`
	Alpha        *float64      `placeholder:"X" help:"Teleport probability of the kernel. [0.1]"`
	Tolerance    *float64      `placeholder:"X" help:"Bound on the certificate of the kernel."`
}

// Merge overrides settings by the flags.
func (f *ResultFlags) Merge(c *Settings) (err error) {
	if f.Classes != "" {
		if c.Classes, err = parseClasses(f.Classes); err != nil {
			return Usage(err)
		}
	}
	if f.Everyone {
		c.Communities = append(c.Communities, Community{Name: "everyone", Everyone: true})
	}
	for _, text := range f.Community {
		name, condition, ok := strings.Cut(text, "=")
		key, value, ok2 := strings.Cut(condition, ":")
		if !ok || !ok2 || name == "" || key == "" {
			return Usagef("--community %q: want NAME=KEY:VALUE, such as german=language:de", text)
		}
		c.Communities = append(c.Communities,
			Community{Name: name, Where: map[string]any{key: wire.ParseAttribute(value)}})
	}
	if err := f.mergeEstimates(c); err != nil {
		return err
	}
	c.Classifier = cmp.Or(f.Classifier, c.Classifier)
	c.HalfLife = cmp.Or(f.HalfLife, c.HalfLife)
	c.Kernel = cmp.Or(f.Kernel, c.Kernel)
	return errors.Join(overrideNumber(&c.Alpha, "--alpha", f.Alpha),
		overrideNumber(&c.Tolerance, "--tolerance", f.Tolerance))
}

// overrideNumber replaces a configured number by a flag, if the flag is given. Zero would mean the
// default, so it is refused.
func overrideNumber(dst *float64, flag string, value *float64) error {
	if value != nil && *value == 0 {
		return Usagef("%s: 0 is out of range; leave it out for the default", flag)
	}
	*dst = *cmp.Or(value, dst)
	return nil
}

// mergeEstimates replaces the methods, if any are given, and the preset, lambda and interval of
// each estimate.
func (f *ResultFlags) mergeEstimates(c *Settings) error {
	if f.Method != "" {
		methods, err := quant.ParseMethods(f.Method)
		if err != nil {
			return Usage(err)
		}
		c.Estimates = nil
		for _, m := range methods {
			c.Estimates = append(c.Estimates, Estimate{Method: string(m)})
		}
	}
	if len(c.Estimates) == 0 {
		c.Estimates = []Estimate{{Method: "auto"}}
	}
	for i := range c.Estimates {
		e := &c.Estimates[i]
		e.Preset = cmp.Or(f.Preset, e.Preset)
		e.Lambda = cmp.Or(Lambda(f.Lambda), e.Lambda)
		e.Simultaneous = e.Simultaneous || f.Simultaneous
		if err := overrideNumber(&e.Confidence, "--confidence", f.Confidence); err != nil {
			return err
		}
	}
	return nil
}

// ClassSet returns the classes for the decoders.
func (c Classes) ClassSet() event.ClassSet { return event.ClassSet{Names: c} }
