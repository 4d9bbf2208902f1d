package pipeline

import (
	"context"
	"errors"
	"os"
	"slices"

	"gqlstream/config"
)

// errReload ends a run that begins again with the configuration that it has read.
var errReload = errors.New("the configuration has been read again")

// reloader reads the configuration again at a signal, whether events come or not.
type reloader struct {
	signals  chan os.Signal // capacity 1: one more while one waits says nothing new
	read     func() (config.Settings, error)
	settings config.Settings // the newest that can be taken over
}

// watch ends the run at a signal. A configuration that is not valid, or decides other results, ends nothing.
func (r *reloader) watch(ctx context.Context, p *Pipeline) error {
	for {
		select {
		case <-r.signals:
		case <-ctx.Done():
			return nil
		}
		settings, err := r.read()
		if err == nil {
			err = p.checkReload(&settings)
		}
		if err == nil {
			r.settings = settings
			return errReload
		}
		p.log.Error("the configuration is not reloaded, and goes on as it was", "error", err)
	}
}

// checkReload returns why settings cannot take the place of those in force.
func (p *Pipeline) checkReload(settings *config.Settings) error {
	core, err := settings.Core()
	_, err1 := settings.AlertRules()
	_, err2 := settings.NotifyTargets()
	if err := errors.Join(err, err1, err2, settings.HTTP.Validate()); err != nil {
		return err
	}
	if core.Digest() != p.Config.Digest() || !slices.Equal(settings.Classes, p.settings.Classes) {
		return errors.New("it decides other results, so that the log must be read again: restart")
	}
	return nil
}
