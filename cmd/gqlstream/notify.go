package main

import (
	"context"
	"errors"
	"fmt"

	"gqlstream/pipeline/config"
	"gqlstream/sinks/notify"
)

type notifyCmd struct {
	File string `arg:"" type:"existingfile" help:"The configuration whose targets are meant."`
	Test bool   `required:"" help:"Tell every webhook and Alertmanager one sample alert, once, and say how each took it."`
}

func (*notifyCmd) Help() string {
	return `Tells every target of a configuration one sample alert, named gqlstream-trial, whatever rules it wants, signed and
with its template as an alert would be. No pipeline need run. Exit code 1 if one target did not take it.

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
		return errors.New("not every target took it")
	}
	return nil
}
