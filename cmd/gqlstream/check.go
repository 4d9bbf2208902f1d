package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml"
)

type checkCmd struct {
	File string `arg:"" type:"existingfile" help:"The configuration to check."`
}

// Help is the long help of the command.
func (*checkCmd) Help() string {
	return `Reads a configuration strictly, reports every mistake with its place, and prints the configuration
in effect, defaults filled in.

Example:
  gqlstream check gqlstream.yaml`
}

// Run checks one file.
func (c *checkCmd) Run(con console) error {
	settings, err := loadConfig(c.File)
	if err != nil {
		return err
	}
	config, err := settings.core()
	rules, alertsErr := settings.alerts()
	_, notifyErr := settings.notify()
	if err = errors.Join(err, alertsErr, notifyErr); err != nil {
		return usagef("%s: %s", c.File, strings.ReplaceAll(err.Error(), "\n", "\n"+c.File+": "))
	}
	steps, err := settings.steps()
	if err == nil {
		err = steps.Validate()
	}
	if err != nil {
		return usagef("%s: %w", c.File, err)
	}
	settings.effective(config, steps)
	settings.effectiveAlerts(rules.Rules)
	data, err := yaml.Marshal(settings)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(con.Out, "# %s is fine; this is the configuration in effect. Digest %s\n%s", c.File, config.Digest(), data)
	return err
}
