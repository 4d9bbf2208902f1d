package pipeline

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"

	"gqlstream/config"
)

// reloadable are the keys, or their beginnings, that may change while a pipeline runs.
var reloadable = []string{"alerts", "notify"}

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
		var changed []string
		if err == nil {
			changed, err = takeOver(ctx, p, settings)
		}
		if err != nil {
			p.log.Error("the configuration is not reloaded, and goes on as it was", "error", err)
			continue
		}
		p.log.Info("reloaded", "changed", strings.Join(changed, ", "))
	}
}

// takeOver puts settings in force and returns the keys that have changed. The follower of
// the alerts goes on from where it is under the new rules. Secrets are read again,
// whether keys have changed or not.
func takeOver(ctx context.Context, p *Pipeline, settings config.Settings) ([]string, error) {
	core, err := settings.Core()
	if err != nil {
		return nil, err
	}
	changed := changedKeys("", reflect.ValueOf(p.alerting.settings), reflect.ValueOf(settings))
	if err := refuseKeys(changed, core.Digest() != p.Config.Digest()); err != nil {
		return nil, err
	}
	_, err1 := settings.AlertRules()
	_, err2 := settings.NotifyTargets()
	secrets, err := p.Page.ReadSecrets()
	if err := cmp.Or(err1, err2, err); err != nil {
		return nil, err
	}
	p.followers.assigning.Lock()
	defer p.followers.assigning.Unlock()
	before := p.alerting.settings
	err = p.alerting.restart(ctx, settings)
	if err == nil {
		p.Page.UseSecrets(secrets)
	} else if again := p.alerting.restart(ctx, before); again != nil {
		err = fmt.Errorf("%w; and the alerts before stand still until a restart: %w", err, again)
	}
	return changed, err
}

func refuseKeys(changed []string, digest bool) error {
	refused := slices.DeleteFunc(slices.Clone(changed), func(key string) bool {
		return slices.ContainsFunc(reloadable, func(r string) bool {
			return key == r || strings.HasPrefix(key, r+".") || strings.HasPrefix(key, r+"[")
		})
	})
	switch {
	case len(refused) == 0:
		return nil
	case digest:
		return fmt.Errorf("%s: decides results, so that the log must be read again: restart", strings.Join(refused, ", "))
	}
	return fmt.Errorf("%s: takes effect at a restart; only %s can be reloaded", strings.Join(refused, ", "), strings.Join(reloadable, ", "))
}

// changedKeys returns the keys whose values differ, lists as a whole.
func changedKeys(prefix string, a, b reflect.Value) (keys []string) {
	if a.Kind() != reflect.Struct {
		if !reflect.DeepEqual(a.Interface(), b.Interface()) {
			return []string{strings.TrimSuffix(prefix, ".")}
		}
		return nil
	}
	for i := range a.NumField() {
		key := a.Type().Field(i).Tag.Get("yaml")
		keys = append(keys, changedKeys(prefix+key+".", a.Field(i), b.Field(i))...)
	}
	return keys
}
