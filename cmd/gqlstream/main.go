// Command gqlstream keeps label-prevalence estimates of tracked communities
// current while the graph, the labels and the predictions change. GQL is graph
// quantification learning.
//
// Reading the source: run.go holds the only loop (next, step, write, record);
// incremental.Core.Step is one batch through the core; estimate.go and replay.go
// drive the same core from files.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"
)

// Exit codes of every command.
const (
	exitFine   = 0
	exitFailed = 1
	exitUsage  = 2 // wrong arguments or configuration
)

// usageError marks an error that the user mends by changing arguments or
// configuration; it decides the exit code.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// console is where a command talks to its user: results to Out, all else to Err.
type console struct {
	In       io.Reader
	Out, Err io.Writer
}

type cli struct {
	Run        runCmd        `cmd:"" help:"Follow the stream and keep the estimates of every community current."`
	Publish    publishCmd    `cmd:"" help:"Publish files to the stream."`
	Watch      watchCmd      `cmd:"" help:"Show the communities of a running pipeline in the terminal."`
	Estimate   estimateCmd   `cmd:"" help:"Estimate once, from files."`
	Evaluate   evaluateCmd   `cmd:"" help:"Say which method to use on your labelled graph, and whether its interval can be believed."`
	Replay     replayCmd     `cmd:"" help:"Run a stream or files from the beginning through a fresh core."`
	Explain    explainCmd    `cmd:"" help:"Say why an estimate moved between two places of the log."`
	Check      checkCmd      `cmd:"" help:"Check a configuration and print it as it takes effect."`
	Demo       demoCmd       `cmd:"" help:"Show truth, plain counting and our estimate, live, on a simulated network."`
	Simulate   simulateCmd   `cmd:"" help:"Make an evolving social network with known truth, into a file or a stream."`
	Snapshot   snapshotCmd   `cmd:"" help:"List, show and export checkpoints."`
	Purge      purgeCmd      `cmd:"" help:"Delete the beginning of the log that no checkpoint needs any more."`
	Bench      benchCmd      `cmd:"" help:"Measure this build on this machine against the goals of its design."`
	Quarantine quarantineCmd `cmd:"" help:"List, show and retry what was refused."`
	Version    versionCmd    `cmd:"" help:"Print the version, the Go release and the event schema version."`
}

func main() {
	tuneCollector()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := execute(ctx, os.Args[1:], console{In: os.Stdin, Out: os.Stdout, Err: os.Stderr})
	stop()
	os.Exit(code)
}

// execute runs one command line and returns the exit code. Tests call it too.
func execute(ctx context.Context, args []string, con console) int {
	exited := -1
	parser, err := kong.New(&cli{},
		kong.Name("gqlstream"),
		kong.Description("Keeps label-prevalence estimates of communities current while a graph changes."),
		kong.UsageOnError(),
		kong.Writers(con.Out, con.Err),
		kong.Exit(func(code int) { exited = code; panic(exitPanic{}) }),
		kong.BindTo(ctx, (*context.Context)(nil)),
		kong.Bind(con),
	)
	if err != nil {
		fmt.Fprintln(con.Err, "gqlstream:", err)
		return exitUsage
	}
	if len(args) == 0 {
		args = []string{"--help"}
	}
	kctx, code := parse(parser, args, con, &exited)
	if kctx == nil {
		return code
	}
	if err := kctx.Run(); err != nil {
		fmt.Fprintln(con.Err, "gqlstream:", err)
		var usage usageError
		if errors.As(err, &usage) {
			return exitUsage
		}
		return exitFailed
	}
	return exitFine
}

// exitPanic carries kong's wish to exit (after --help) out of the parser.
type exitPanic struct{}

func parse(parser *kong.Kong, args []string, con console, exited *int) (kctx *kong.Context, code int) {
	defer func() {
		if p := recover(); p != nil {
			if _, ok := p.(exitPanic); !ok {
				panic(p)
			}
			kctx, code = nil, *exited
		}
	}()
	kctx, err := parser.Parse(args)
	if err != nil {
		fmt.Fprintf(con.Err, "gqlstream: %v\nTry 'gqlstream --help'.\n", err)
		return nil, exitUsage
	}
	return kctx, exitFine
}
