package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"gqlstream/ingest/broker"
	"gqlstream/pipeline/config"
	"gqlstream/quant"
)

type checkCmd struct {
	File      string `arg:"" type:"existingfile" help:"The configuration to check."`
	Elsewhere bool   `help:"Skip the test of secrets and certificates, which are on another machine."`
}

func (*checkCmd) Help() string {
	return `Reads a configuration strictly, reports every mistake with its line, and prints the
configuration in effect with all defaults. A missing key is off, or is decided when the pipeline
runs. The named files of secrets and certificates must exist, as for a run.

The digest identifies the keys that decide results. The digest of a small sample also differs
between versions that compute different results: compare both before an upgrade.

Examples:
  gqlstream check gqlstream.yaml
  gqlstream check --elsewhere gqlstream.yaml`
}

// Run checks one file.
func (c *checkCmd) Run(con console) error {
	settings, loadErr := config.Load(c.File)
	if loadErr != nil && !errors.As(loadErr, new(config.UnknownKeysError)) {
		return loadErr
	}
	conf, err := settings.Core()
	rules, alertsErr := settings.AlertRules()
	targets, notifyErr := settings.NotifyTargets()
	steps, _ := settings.Steps() // whose error is one of the core's
	_, _, namesErr := settings.Names()
	_, _, listenErr := broker.ListenAddress(cmp.Or(settings.NATS.Listen, "127.0.0.1:0"))
	err = errors.Join(err, alertsErr, notifyErr, steps.Validate(), namesErr, listenErr,
		settings.HTTP.Validate())
	if !c.Elsewhere {
		err = errors.Join(err, settings.HTTP.ValidateFiles(), targets.ValidateFiles(),
			settings.NATS.ValidateFiles())
	}
	if err != nil {
		err = config.Usagef("%s: %s",
			c.File, strings.ReplaceAll(err.Error(), "\n", "\n"+c.File+": "))
	}
	if err = errors.Join(loadErr, err); err != nil {
		return err
	}
	settings.FillDefaults(conf, steps)
	settings.FillAlertDefaults(rules.Rules, targets)
	settings.NATS.URL = broker.Redacted(settings.NATS.URL)
	settings.NATS.Answers.URL = broker.Redacted(settings.NATS.Answers.URL)
	// whoever has the path may post: Slack and Teams have no other password
	for i := range settings.Notify.Webhooks {
		hook := &settings.Notify.Webhooks[i]
		hook.URL = afterHost.ReplaceAllString(hook.URL, "$1/xxxxx")
	}
	data, err := yaml.MarshalWithOptions(settings, yaml.OmitZero())
	if err != nil {
		return err
	}
	results, err := resultsDigest(conf)
	if err != nil {
		return err
	}
	noteSilentAlerts(con.Err, &settings)
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
	return err
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
