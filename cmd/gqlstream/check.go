package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"gqlstream/ingest"
	"gqlstream/ingest/broker"
	"gqlstream/ingest/event"
	"gqlstream/pipeline/config"
	"gqlstream/quant"
)

type checkCmd struct {
	File      string `arg:"" optional:"" type:"existingfile" help:"The configuration to check."`
	Elsewhere bool   `help:"${check_elsewhere}"`
	fileFlags
	refusedFlags
}

func (*checkCmd) Help() string {
	return `Reads a configuration strictly, reports every mistake with its line, and prints the
configuration in effect with all defaults. A missing key is off, or is decided when the pipeline
runs. Files of secrets and certificates must exist, as for a run.

The digest identifies the keys that decide results. The digest of a small sample also differs
between versions that compute different results: compare both before an upgrade. The sample is a
week of all kinds of events, without your attributes. gqlstream replay compares two versions on your
own log.

Files of events are read to their end, with the summary that publish and estimate print. Nothing is
published or estimated.

Examples:
  gqlstream check gqlstream.yaml
  gqlstream check gqlstream.yaml --edges edges.csv.gz --labels labels.csv
  gqlstream check --elsewhere gqlstream.yaml`
}

// Run checks a configuration, files of events, or both.
func (c *checkCmd) Run(ctx context.Context, con console) error {
	settings := &config.Settings{}
	switch {
	case c.File != "":
		classes, err := c.checkConfiguration(con)
		if err != nil {
			return err
		}
		settings.Classes = classes
	case !c.any():
		return config.Usagef("check: give a configuration, or files such as --edges edges.csv")
	}
	if !c.any() {
		return nil
	}
	source, err := c.openFiles(con, settings, ingest.StepConfig{Every: -1})
	if err != nil {
		return err
	}
	return errors.Join(c.readFiles(ctx, source, newMeter(con.Err, "events read"),
		func(*event.Batch) ([]event.Refusal, error) { return nil, nil }))
}

// checkConfiguration prints a configuration as it takes effect, and returns its classes.
func (c *checkCmd) checkConfiguration(con console) (classes config.Classes, err error) {
	settings, loadErr := config.Load(c.File)
	if loadErr != nil && !errors.As(loadErr, new(config.UnknownKeysError)) {
		return nil, loadErr
	}
	err = settings.Validate()
	conf, _ := settings.Core() // Validate reports this error too
	rules, _ := settings.AlertRules()
	targets, _ := settings.NotifyTargets()
	steps, _ := settings.Steps()
	if !c.Elsewhere {
		err = errors.Join(err, settings.HTTP.ValidateFiles(), targets.ValidateFiles(),
			settings.NATS.ValidateFiles())
	}
	if err != nil {
		err = config.Usagef("%s: %s",
			c.File, strings.ReplaceAll(err.Error(), "\n", "\n"+c.File+": "))
	}
	if err = errors.Join(loadErr, err); err != nil {
		return nil, err
	}
	settings.FillDefaults(conf, steps)
	settings.FillAlertDefaults(rules.Rules, targets)
	settings.NATS.URL = broker.Redacted(settings.NATS.URL)
	settings.NATS.Answers.URL = broker.Redacted(settings.NATS.Answers.URL)
	// the path is the secret: Slack and Teams have no other password
	for i := range settings.Notify.Webhooks {
		hook := &settings.Notify.Webhooks[i]
		hook.URL = afterHost.ReplaceAllString(hook.URL, "$1/xxxxx")
	}
	data, err := yaml.MarshalWithOptions(settings, yaml.OmitZero())
	if err != nil {
		return nil, err
	}
	results, err := resultsDigest(conf)
	if err != nil {
		return nil, err
	}
	noteSilentAlerts(con.Err, &settings)
	noteUnknownCommunities(con.Err, &settings)
	for _, line := range rules.Expected() {
		fmt.Fprintln(con.Err, "note: "+line)
	}
	_, err = fmt.Fprintf(
		con.Out,
		"# %s is fine; this is the configuration in effect. Digest %s\n"+
			"# Results of gqlstream %s on a small sample: %s\n%s",
		c.File,
		conf.Digest(),
		version,
		results,
		data,
	)
	return settings.Classes, err
}

// afterHost matches a URL with a path or a query.
var afterHost = regexp.MustCompile(`^(\w+://[^/?#]+)[/?#].+$`)

// noteSilentAlerts names the alerts that are told to be silent while labels are few.
func noteSilentAlerts(w io.Writer, settings *config.Settings) {
	for _, a := range settings.Alerts.Rules {
		if slices.Contains(a.Suppress, quant.FlagThin) {
			fmt.Fprintf(
				w,
				"note: alert %s is silent where a class has fewer than 30 effective labels (flag "+
					"%s), as every class does"+
					" while there are fewer than %d labels; leave the flag out of suppress: "+
					"intervals allow for few labels\n",
				a.Name,
				quant.FlagThin,
				30*len(settings.Classes),
			)
		}
	}
}

// noteUnknownCommunities names the communities of alerts that the configuration does not define.
// They may come with member events, or be misspelt.
func noteUnknownCommunities(w io.Writer, settings *config.Settings) {
	var known []string
	for _, c := range settings.Communities {
		known = append(known, c.Name)
	}
	for _, a := range settings.Alerts.Rules {
		for _, name := range a.Communities {
			if len(known) == 0 || strings.ContainsAny(name, "*?") ||
				slices.Contains(known, name) {
				continue
			}
			fmt.Fprintf(w, "note: alert %s watches the community %q, which is not among "+
				"communities: it must come with member events; %s\n",
				a.Name, name, event.Nearest(name, known))
		}
	}
}
