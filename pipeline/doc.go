// Package pipeline is the command gqlstream run: it follows the log in, keeps the core
// current, publishes estimates, and saves the state.
//
// Run opens a Pipeline, whose fold takes the log in: next, step, refuse, publish, checkpoint.
// The fold's goroutine owns the core and the checkpoints. Where the shards of a group's
// worker change, another fold takes the place of the first when it has caught up.
// Everything that a Pipeline opens it closes in reverse order, whatever went wrong.
//
// The loop knows no file, no alert and no page. They follow the log out, each in a
// goroutine of its own and with a position of its own that is as durable as what it
// writes; one that is slow, full or away lags and catches up. The loop waits for the
// broker, and before it would discard what one of them has not taken.
//
// A checkpoint is the core's state at a position of the log, and how far the log out was
// then. A start restores the newest intact one whose configuration is the same and which
// the log out is not behind, and reads the log from there; the same log gives the same
// records, so that what was published before a crash is recognised and left out.
//
// SIGHUP starts it again with the configuration that is read then, if that decides the same
// results.
//
// An Explainer answers why an estimate moved, from the checkpoints and the log, with a
// graph of its own beside the loop.
package pipeline
