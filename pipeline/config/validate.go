package config

import (
	"cmp"
	"errors"

	"gqlstream/ingest/broker"
)

// Validate returns every mistake that the settings alone show, so that a run with one starts no
// server and records nothing. It reads no other file.
func (c Settings) Validate() error {
	_, coreErr := c.Core()
	_, alertsErr := c.AlertRules()
	_, notifyErr := c.NotifyTargets()
	steps, _ := c.Steps() // the core reports its error
	_, _, namesErr := c.Names()
	_, _, listenErr := broker.ListenAddress(cmp.Or(c.NATS.Listen, "127.0.0.1:0"))
	err := errors.Join(coreErr, alertsErr, notifyErr, steps.Validate(), namesErr, listenErr,
		c.HTTP.Validate())
	if err != nil {
		return Usagef("%w", err)
	}
	return nil
}
