// Package pipeline is the command gqlstream run: it follows the input log, keeps the core current,
// publishes estimates, and saves the state.
//
// Open opens the parts of a Pipeline in order: plan, input log, group, output log, fold, page,
// followers. Each function gets finished parts and returns one. A stack of closers closes them, the
// last first, also after a failure. Run then lets the fold process the log in a loop: next, step,
// refuse, publish, checkpoint. The fold's goroutine owns the core and the checkpoints. If the
// shards of a group's worker change, a second fold catches up and replaces the first.
//
// The loop knows no files, alerts or pages. They follow the output log, each in a goroutine of its
// own and with a position that is as durable as its output; a slow or failing follower lags and
// catches up. The loop waits for the broker, and it waits before the broker would discard records
// that a follower has not taken.
//
// A checkpoint is the core's state at a position of the input log, with the position of the output
// log at that time. A start restores the newest intact checkpoint that has the same configuration
// and does not lie beyond the output log, and reads the input log from there. The same log gives
// the same records, so records published before a crash are recognised and not published twice.
//
// On SIGHUP the run restarts with the configuration file as it is then, if that gives the same
// results.
//
// An Explainer answers why an estimate moved, from the checkpoints and the log, with a graph of its
// own in its own goroutine.
package pipeline
