package main

import (
	"errors"
	"slices"
	"strings"
	"time"

	"gqlstream/incremental/classifier"
	"gqlstream/ingest/event"
	"gqlstream/quant"
)

// coreFlags are the flags that decide results; they win over the file.
type coreFlags struct {
	Config     string        `short:"c" type:"existingfile" placeholder:"FILE" help:"Configuration (YAML); see gqlstream check --help."`
	Classes    string        `placeholder:"LIST" help:"Names of the classes in order, or how many there are."`
	Everyone   bool          `help:"Track the community of every vertex, named everyone."`
	Community  []string      `placeholder:"NAME=KEY:VALUE" help:"Track the vertices whose attribute KEY is VALUE (repeatable)."`
	Method     string        `placeholder:"LIST" help:"Estimates to publish, a comma list or all. [auto]"`
	Preset     string        `placeholder:"NAME" help:"Scaling of the weights: density, reference, paper. [density]"`
	Lambda     string        `placeholder:"X" help:"Share of the kernel in the weights, 0 to 1, or auto. [0.9]"`
	Classifier string        `placeholder:"NAME" help:"Predict from the labels, where no prediction is given: enq (votes of labelled neighbours) or diffusion."`
	Density    string        `name:"label-density" placeholder:"NAME" help:"How the labels are spread: uniform (a sample of all), or ppr, measured by the kernel. [uniform]"`
	HalfLife   time.Duration `name:"label-half-life" placeholder:"DURATION" help:"Age at which a calibration label counts half as much as a fresh one, such as 720h. [never]"`
	Kernel     string        `placeholder:"NAME" help:"ppr, truncated, lazy, shortest-path or constant. [ppr]"`
	Alpha      *float64      `placeholder:"X" help:"Teleport probability of the kernel. [0.1]"`
	Tolerance  *float64      `placeholder:"X" help:"Bound on the certificate of the kernel."`
}

// settings reads the configuration file and merges the flags over it.
func (f *coreFlags) settings() (fileConfig, error) {
	c, err := loadConfig(f.Config)
	if err != nil {
		return c, err
	}
	if f.Classes != "" {
		if c.Classes, err = classesFromFlag(f.Classes); err != nil {
			return c, usageError{err}
		}
	}
	if f.Everyone {
		c.Communities = append(c.Communities, communityConfig{Name: "everyone", Everyone: true})
	}
	for _, text := range f.Community {
		name, condition, ok := strings.Cut(text, "=")
		key, value, ok2 := strings.Cut(condition, ":")
		if !ok || !ok2 || name == "" || key == "" {
			return c, usagef("--community %q: want NAME=KEY:VALUE, such as german=language:de", text)
		}
		c.Communities = append(c.Communities, communityConfig{Name: name, Where: map[string]any{key: value}})
	}
	if err := f.mergeEstimates(&c); err != nil {
		return c, err
	}
	override(&c.Classifier, f.Classifier)
	override(&c.Density, f.Density)
	if f.HalfLife != 0 {
		c.HalfLife = f.HalfLife
	}
	override(&c.Kernel, f.Kernel)
	return c, errors.Join(overrideNumber(&c.Alpha, "--alpha", f.Alpha), overrideNumber(&c.Tolerance, "--tolerance", f.Tolerance))
}

// overrideNumber replaces a number of the configuration by that of a flag, if the flag is
// given. Zero, which there stands for the default, is no value.
func overrideNumber(dst *float64, flag string, value *float64) error {
	if value == nil {
		return nil
	}
	if *value == 0 {
		return usagef("%s: 0 is out of range; leave it out for the default", flag)
	}
	*dst = *value
	return nil
}

// mergeEstimates replaces the methods, if any are given, and the preset and
// lambda of each estimate.
func (f *coreFlags) mergeEstimates(c *fileConfig) error {
	if f.Method != "" {
		list, enq := withoutEnq(f.Method)
		if enq && f.Classifier != "" && f.Classifier != classifier.EnqName {
			return usagef("--method enq is --classifier enq, and --classifier %s is another", f.Classifier)
		}
		if enq {
			c.Classifier = classifier.EnqName
		}
		methods, err := quant.ParseMethods(list)
		if err != nil {
			return usageError{err}
		}
		c.Estimates = nil
		for _, m := range methods {
			c.Estimates = append(c.Estimates, estimateConfig{Method: string(m)})
		}
	}
	if len(c.Estimates) == 0 {
		c.Estimates = []estimateConfig{{Method: "auto"}}
	}
	for i := range c.Estimates {
		override(&c.Estimates[i].Preset, f.Preset)
		override((*string)(&c.Estimates[i].Lambda), f.Lambda)
	}
	return nil
}

// withoutEnq reads the method enq, which is acc on the predictions of the classifier
// of that name.
func withoutEnq(list string) (methods string, enq bool) {
	names := strings.Split(list, ",")
	at := slices.IndexFunc(names, func(name string) bool { return strings.TrimSpace(name) == classifier.EnqName })
	if at < 0 {
		return list, false
	}
	if slices.Contains(names, string(quant.ACC)) {
		names = slices.Delete(names, at, at+1)
	} else {
		names[at] = string(quant.ACC)
	}
	return strings.Join(names, ","), true
}

// set returns the classes as the decoders want them.
func (c classList) set() event.ClassSet { return event.ClassSet{Names: c} }
