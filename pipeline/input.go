package pipeline

import (
	"cmp"
	"context"

	"gqlstream/ingest"
	"gqlstream/ingest/broker"
	"gqlstream/pipeline/config"
	"gqlstream/sinks"
)

// names are the streams, the subjects and the bucket of a pipeline.
type names struct {
	In  broker.StreamNames
	Out sinks.Names
}

func namesOf(settings *config.Settings) (n names, err error) {
	n.In, n.Out, err = settings.Names()
	return n, err
}

// input is the input log of a pipeline: the connection to its broker, and the newest place that
// this state directory has seen.
type input struct {
	Broker  *broker.Broker
	names   names // with the number of replicas that the log has
	reached *reached
}

// openInput connects to the broker, or starts the embedded one, and makes sure that the log is
// there.
func openInput(
	ctx context.Context, plan *plan, accept bool, opened *closers,
) (*input, error) {
	settings := &plan.settings
	names, err := namesOf(settings)
	if err != nil {
		return nil, err
	}
	b, err := config.OpenBroker(*settings, plan.log)
	if err != nil {
		return nil, err
	}
	opened.add(b.Close)
	if b.Embedded == nil { // the embedded one has its own lock
		lock, err := broker.AcquireLock(settings.State)
		if err != nil {
			return nil, err
		}
		opened.add(lock.Close)
		plan.log.Info("the broker's own settings decide its losses at a power cut: with jetstream" +
			" {sync_interval: always} nothing, otherwise acknowledged events of two minutes")
	}
	in := &input{Broker: b, names: names, reached: &reached{path: reachedIn(settings.State)}}
	opened.add(in.reached.close)
	if err := in.reached.lost(settings.State); err != nil {
		plan.log.Warn(err.Error())
	}
	if err := in.checkLogIsThere(ctx, settings.State, accept); err != nil {
		return nil, err
	}
	if err := in.reached.open(); err != nil {
		return nil, err
	}
	if err := broker.EnsureStreams(ctx, b.JS, names.In); err != nil {
		return nil, err
	}
	log, err := broker.EnsureLog(ctx, b.JS, names.In)
	if err != nil {
		return nil, err
	}
	in.names.In.Replicas = cmp.Or(names.In.Replicas, log.Replicas)
	return in, nil
}

// startTicker starts the ticks of the log. Steps end by them. A log that is drained, or cut by
// times of events, needs none. The workers of a group recognise their ticks by a shared secret.
func startTicker(
	ctx context.Context, b *base, folds *folds, drain bool, opened *closers,
) (*ingest.Ticker, error) {
	step := folds.main.Load().steps
	if drain || step.Time == ingest.EventTime {
		return nil, nil //nolint:nilnil // none is needed
	}
	c := ingest.TickerConfig{
		Stream: b.names.In.Log, Every: step.Every,
		Pending: func() bool {
			main := folds.main.Load()
			return main.source.Pending() || main.behind.Load()
		},
	}
	if b.group != nil {
		var err error
		if c.Secret, err = ingest.TickSecret(ctx, b.Broker.JS, c.Stream); err != nil {
			return nil, err
		}
	}
	ticker := ingest.StartTicker(ctx, b.Broker.JS, c)
	opened.add(func() error { ticker.Stop(); return nil })
	return ticker, nil
}
