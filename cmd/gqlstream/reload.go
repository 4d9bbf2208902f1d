package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"reflect"
	"slices"
	"strings"
	"syscall"

	"gqlstream/ingest/event"
)

// reloadable are the keys, or their beginnings, that may change while a pipeline
// runs.
var reloadable = []string{
	"alerts", "notify", "output.file", "output.alerts", "output.parquet", "output.arrow", "output.every",
}

// reloader reads the configuration again when the process gets SIGHUP.
type reloader struct {
	signals chan os.Signal // capacity 1: one more while one waits says nothing new
	read    func() (fileConfig, error)
}

// newReloader begins to wait for SIGHUP, which would end the process otherwise. read
// is what gives the settings.
func newReloader(read func() (fileConfig, error)) *reloader {
	r := &reloader{signals: make(chan os.Signal, 1), read: read}
	signal.Notify(r.signals, syscall.SIGHUP)
	return r
}

func (r *reloader) stop() { signal.Stop(r.signals) }

// reloadIfAsked takes a new configuration over after a step, if there was a signal.
// What cannot be taken over changes nothing, and is said in the log.
func (p *pipeline) reloadIfAsked(ctx context.Context, b *event.Batch) {
	if p.reload == nil {
		return
	}
	select {
	case <-p.reload.signals:
	default:
		return
	}
	settings, err := p.reload.read()
	var changed []string
	if err == nil {
		changed, err = p.takeOver(ctx, settings, b.Last)
	}
	if err != nil {
		p.log.Error("the configuration is not reloaded, and goes on as it was", "position", b.Last, "error", err)
		return
	}
	p.log.Info("reloaded", "position", b.Last, "changed", strings.Join(changed, ", "))
}

// takeOver puts settings in force after a position and returns the keys that have
// changed. Secrets are read again, whether keys have changed or not.
func (p *pipeline) takeOver(ctx context.Context, settings fileConfig, position event.Position) ([]string, error) {
	config, err := settings.core()
	if err != nil {
		return nil, err
	}
	changed := changedKeys("", reflect.ValueOf(p.settings), reflect.ValueOf(settings))
	if err := refuseKeys(changed, config.Digest() != p.config.Digest()); err != nil {
		return nil, err
	}
	if now := p.settings.Output.File; now != settings.Output.File && (now == "-" || settings.Output.File == "-") {
		return nil, errors.New("output.file: standard output takes effect at a restart")
	}
	rules, err := settings.alerts()
	if err != nil {
		return nil, err
	}
	useSecrets, err := p.readSecrets()
	if err != nil {
		return nil, err
	}
	targets, err := p.startTargets(ctx, settings)
	if err != nil {
		return nil, err
	}
	undo, err := p.addQueues(ctx, settings.Output)
	if err != nil {
		targets.Stop()
		return nil, err
	}
	history := p.alerts.history
	history.Generations = slices.Clone(history.Generations)
	history.add(uint64(position), p.config.Digest(), rules)
	if err := history.commit(p.settings.State); err != nil {
		undo()
		targets.Stop()
		return nil, err
	}
	useSecrets()
	p.dropQueues(ctx, settings.Output)
	p.watch()
	p.alerts.targets.Stop()
	p.alerts.targets, p.alerts.history, p.settings = targets, history, settings
	if err := targets.RemoveOthers(ctx); err != nil { // the next start tries again
		p.log.Warn("reloaded, but", "error", err)
	}
	return changed, nil
}

// readSecrets reads the token and the certificate of the page again.
func (p *pipeline) readSecrets() (use func(), err error) {
	if p.page == nil {
		return func() {}, nil
	}
	secrets, err := p.page.ReadSecrets()
	return func() { p.page.UseSecrets(secrets) }, err
}

// refuseKeys names what has changed and must not.
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
