package pipeline

import (
	"context"
	"errors"
	"fmt"
	"os"

	"gqlstream/internal/checkpoint"
	"gqlstream/pipeline/config"
	"gqlstream/sinks"
)

// lost returns an error if the file reached is damaged, or if the state directory has
// checkpoints without it: every run creates it before its first checkpoint.
func (r *reached) lost(state string) error {
	what := "is damaged"
	switch dir := checkpoint.Look(checkpoint.Disk{}, checkpointsIn(state)); {
	case r.damaged():
	case r.empty() && len(dir.Manifests()) > 0:
		what = "is missing or empty"
	default:
		return nil
	}
	return fmt.Errorf("%s %s: the end of the log is compared with checkpoints, marks and outputs"+
		" only. Make sure that the broker has not lost the newest events; the next event writes"+
		" the file again", r.path, what)
}

// reportLostPositions warns of the lost states of followers.
func (b *base) reportLostPositions(ctx context.Context) {
	for _, lost := range b.lostPositions(ctx) {
		b.log.Warn(lost.Error())
	}
}

// lostPositions returns an error for each follower without a state although the output log has
// records of this log, and for a damaged history. A damaged state of alerts ends the run. Both
// followers write their state before the first record.
func (b *base) lostPositions(ctx context.Context) (lost []error) {
	alerts := b.alertsState
	history := b.historyState
	if damage := sinks.VerifyState(ctx, history); damage != nil {
		lost = append(lost, fmt.Errorf("%w. %s", damage, b.historyAgain()))
	}
	if !b.hasPublished(ctx) {
		return lost
	}
	if missing(ctx, alerts) {
		lost = append(lost, fmt.Errorf("%s is missing, although %s has records: alerts begin"+
			" again, and those that were firing do not end. To continue them, stop the run and"+
			" restore the file from a backup", alerts, b.names.Out.Estimates))
	}
	if missing(ctx, history) {
		lost = append(lost, fmt.Errorf("%s is missing, although %s has records. %s",
			history, b.names.Out.Estimates, b.historyAgain()))
	}
	return lost
}

func (b *base) historyAgain() string {
	return fmt.Sprintf("The history is made again from %s: hours and days that are unfinished lack"+
		" what is no longer there. To keep them, stop the run and restore the file from a backup",
		b.names.Out.Estimates)
}

// hasPublished reports whether the output log has records of this log.
func (b *base) hasPublished(ctx context.Context) bool {
	marks, _ := sinks.Marks(ctx, b.Broker.JS, b.names.Out) // the writers report errors
	for _, m := range marks {
		if m.Log == b.logID && m.Position > 0 {
			return true
		}
	}
	return false
}

func missing(ctx context.Context, s sinks.StateStore) bool {
	_, err := s.Read(ctx)
	return errors.Is(err, os.ErrNotExist)
}

// missingPositions returns an error for each missing position file of a state directory and its
// outputs. A worker of a group has neither the state of alerts nor that of the history in its
// directory, so only one of the two that is missing counts.
func (r *records) missingPositions(ctx context.Context) (lost []error) {
	report := func(format string, args ...any) { lost = append(lost, fmt.Errorf(format, args...)) }
	if err := r.in.reached.lost(r.state); err != nil {
		lost = append(lost, err)
	}
	alerts := r.alertsState
	history := r.historyState
	switch noAlerts, noHistory := missing(ctx, alerts), missing(ctx, history); {
	case noAlerts && !noHistory:
		report("%s is missing: it has the state of alerts", alerts)
	case noHistory && !noAlerts:
		report("%s is missing: it has the unfinished roll-ups", history)
	}
	return append(lost, missingOutputPositions(r.outputs)...)
}

// missingOutputPositions returns an error for each output file or directory without its position.
func missingOutputPositions(out config.Output) (lost []error) {
	for _, file := range []string{out.File, out.Alerts} {
		if file == "" || file == "-" {
			continue
		}
		info, err := os.Stat(file)
		_, none := os.Stat(sinks.PositionFile(file))
		if err == nil && info.Size() > 0 && errors.Is(none, os.ErrNotExist) {
			lost = append(lost, fmt.Errorf("%s is missing: it has the position of %s",
				sinks.PositionFile(file), file))
		}
	}
	if out.Parquet == "" {
		return lost
	}
	_, none := os.Stat(sinks.PartsPositionFile(out.Parquet))
	if sinks.HasParts(out.Parquet) && errors.Is(none, os.ErrNotExist) {
		lost = append(lost, fmt.Errorf("%s is missing: it has the position of the parts",
			sinks.PartsPositionFile(out.Parquet)))
	}
	return lost
}

// reportLostOutput warns if the output log has lost messages at its end since this state directory
// was last used, and returns their number. The run publishes their records again, from the
// checkpoint that it begins with.
func (b *base) reportLostOutput(ctx context.Context) (uint64, error) {
	stream, err := b.Broker.JS.Stream(ctx, b.names.Out.Estimates)
	if err != nil {
		return 0, err
	}
	now := stream.CachedInfo()
	b.reached.made = now.Created.UnixNano()
	lost := b.reached.lostOutput(now)
	if lost > 0 {
		b.log.Warn("the broker has lost messages at the end of the output log; the run publishes "+
			"their records again. An outside broker keeps acknowledged messages with "+
			"jetstream {sync_interval: always}",
			"stream", b.names.Out.Estimates, "messages", lost, "ends", now.State.LastSeq)
	}
	return lost, nil
}
