package pipeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"

	"gqlstream/config"
)

type reloader struct {
	signals chan os.Signal // capacity 1: one more while one waits says nothing new
	read    func() (config.Settings, error)
}

// watch takes a new configuration over at a signal, whether events come or not. What
// cannot be taken over changes nothing, and is said in the log.
func (r *reloader) watch(ctx context.Context, p *Pipeline) error {
	for {
		select {
		case <-r.signals:
		case <-ctx.Done():
			return nil
		}
		settings, err := r.read()
		if err == nil {
			err = takeOver(ctx, p, settings)
		}
		if err != nil {
			p.log.Error("the configuration is not reloaded, and goes on as it was", "error", err)
			continue
		}
		p.log.Info("reloaded")
	}
}

// takeOver puts the alerts of settings and their receivers in force; nothing else may have changed. The
// follower of the alerts goes on from where it is under the new rules. Secrets are read again,
// whether keys have changed or not.
func takeOver(ctx context.Context, p *Pipeline, settings config.Settings) error {
	core, err := settings.Core()
	if err != nil {
		return err
	}
	others := settings
	others.Alerts, others.Notify = p.settings.Alerts, p.settings.Notify
	switch {
	case core.Digest() != p.Config.Digest():
		return errors.New("a key that decides results has changed, so that the log must be read again: restart")
	case !reflect.DeepEqual(others, p.settings):
		return errors.New("a key that takes effect at a restart has changed; only alerts and notify can be reloaded")
	}
	_, err1 := settings.AlertRules()
	_, err2 := settings.NotifyTargets()
	secrets, err := p.Page.ReadSecrets()
	if err := cmp.Or(err1, err2, err); err != nil {
		return err
	}
	p.assigning.Lock()
	defer p.assigning.Unlock()
	before, leads := p.settings, p.group.leads(followerAlerts)
	p.followers.end(followerAlerts)
	running := context.WithoutCancel(ctx) // until it is ended with the others
	if err := p.alerting.start(running, settings, leads); err != nil {
		if again := p.alerting.start(running, before, leads); again != nil {
			return fmt.Errorf("%w; and the alerts before stand still until a restart: %w", err, again)
		}
		return err
	}
	p.Page.UseSecrets(secrets)
	p.settings.Alerts, p.settings.Notify = settings.Alerts, settings.Notify
	return nil
}
