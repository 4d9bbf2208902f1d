package main

import (
	"context"
	"errors"
	"fmt"

	"gqlstream/pipeline/config"
	"gqlstream/sinks/notify"
)

type notifyCmd struct {
	File string `arg:"" type:"existingfile" help:"The configuration with the targets."`
	Test bool   `required:"" help:"${notify_test}"`
}

func (*notifyCmd) Help() string {
	return `Sends one sample alert, named gqlstream-trial, to every target of a configuration,
whatever its rules are, signed and with its template. No pipeline is needed. Exits with 1 if a
target did not accept the alert.

Example:
  gqlstream notify gqlstream.yaml --test`
}

// Run tells the targets.
func (c *notifyCmd) Run(ctx context.Context, con console) error {
	settings, err := config.Load(c.File)
	if err != nil {
		return err
	}
	targets, err := settings.NotifyTargets()
	if err != nil {
		return config.Usage(err)
	}
	outcomes, err := notify.Trial(ctx, targets)
	if err != nil {
		return config.Usage(err)
	}
	if len(outcomes) == 0 {
		return config.Usagef("%s: notify names no webhook and no Alertmanager", c.File)
	}
	refused := 0
	for _, o := range outcomes {
		text := "took it"
		if o.Err != nil {
			refused++
			text = o.Err.Error()
		}
		if _, err := fmt.Fprintf(con.Out, "%s: %s\n", o.Name, text); err != nil {
			return err
		}
	}
	if refused > 0 {
		return errors.New("not every target accepted the sample")
	}
	return nil
}
