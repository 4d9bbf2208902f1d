// Command gqlstream keeps label-prevalence estimates of tracked communities
// current while the graph, the labels and the predictions change. GQL is graph
// quantification learning.
//
// Reading the source: package pipeline holds the only loop (next, step, refuse, publish,
// checkpoint); incremental.Core.Step is one batch through the core; estimate.go and replay.go drive
// the same core from files.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"gqlstream/ingest/event"
	"gqlstream/lab/evaluate"
	"gqlstream/lab/simulate"
	"gqlstream/pipeline"
	"gqlstream/pipeline/config"
)

// Exit codes of every command.
const (
	exitFine   = 0
	exitFailed = 1
	exitUsage  = 2 // wrong arguments or configuration
)

// console connects a command with its user: results go to Out, all else to Err.
type console struct {
	In       io.Reader
	Out, Err io.Writer

	closers *[]func() error // of everything the command has opened
}

// atEnd registers a function that closes something when the command ends, in reverse order.
func (c console) atEnd(closer func() error) { *c.closers = append(*c.closers, closer) }

type cli struct {
	Run         runCmd         `cmd:"" help:"${cli_run}"`
	Publish     publishCmd     `cmd:"" help:"Publish files to the stream."`
	Watch       watchCmd       `cmd:"" help:"${cli_watch}"`
	Estimate    estimateCmd    `cmd:"" help:"Estimate once, from files."`
	Communities communitiesCmd `cmd:"" help:"Find communities in a graph, by its edges."`
	Ask         askCmd         `cmd:"" help:"${cli_ask}"`
	Evaluate    evaluateCmd    `cmd:"" help:"${cli_evaluate}"`
	Replay      replayCmd      `cmd:"" help:"${cli_replay}"`
	Explain     explainCmd     `cmd:"" help:"${cli_explain}"`
	Check       checkCmd       `cmd:"" help:"Check a configuration and print it with all defaults."`
	Demo        demoCmd        `cmd:"" help:"${cli_demo}"`
	Simulate    simulateCmd    `cmd:"" help:"${cli_simulate}"`
	Snapshot    snapshotCmd    `cmd:"" help:"List, show and export checkpoints."`
	Purge       purgeCmd       `cmd:"" help:"${cli_purge}"`
	Backup      backupCmd      `cmd:"" help:"${cli_backup}"`
	Restore     restoreCmd     `cmd:"" help:"Restore a backup."`
	Scrub       scrubCmd       `cmd:"" help:"${cli_scrub}"`
	Quarantine  quarantineCmd  `cmd:"" help:"List, show and retry refused events."`
	Group       groupCmd       `cmd:"" help:"List the workers of a group, or drain one of them."`
	Notify      notifyCmd      `cmd:"" help:"${cli_notify}"`
	Health      healthCmd      `cmd:"" help:"Check the health of the run on this machine."`
	MCP         mcpCmd         `cmd:"" name:"mcp" help:"${cli_mcp}"`
	Version     versionCmd     `cmd:"" help:"${cli_version}"`
}

func main() {
	pipeline.TuneCollector()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	go endWithin(ctx, stopWaitMax, os.Exit)
	code := execute(ctx, os.Args[1:], console{In: os.Stdin, Out: os.Stdout, Err: os.Stderr})
	stop()
	os.Exit(code)
}

// stopWaitMax bounds how long a command may take to end after a signal.
const stopWaitMax = 10 * time.Second

// endWithin ends the process some time after ctx has ended, in case a long step is still under
// way. Nothing is lost: a run goes on from its last checkpoint, as after a crash.
func endWithin(ctx context.Context, wait time.Duration, exit func(code int)) {
	<-ctx.Done()
	time.Sleep(wait)
	fmt.Fprintf(os.Stderr,
		"gqlstream: ends without finishing its work, %v after the signal\n",
		wait)
	exit(exitFailed)
}

// words are the words that flags take.
var words = kong.Vars{
	"reasons": listed(event.Reasons),
	"kinds":   listed(event.KindNames()),
	"sorts":   "name,members,share,width,coverage,certificate,flags,updated",
}

// helpTexts fills in the variables of the help texts. Every parser of commands needs it. The parser
// interpolates each of its variables once for each flag, which took 60 ms of every command with the
// texts among them. So the texts take their places before, and the parser has the few words.
var helpTexts = kong.OptionFunc(func(k *kong.Kong) error {
	place := kong.PostBuild(func(k *kong.Kong) error {
		return kong.Visit(k.Model, func(node kong.Visitable, next kong.Next) error {
			switch node := node.(type) {
			case *kong.Value:
				node.Help = flagTexts.Replace(node.Help)
			case *kong.Node:
				node.Help = flagTexts.Replace(node.Help)
			}
			return next(nil)
		})
	})
	return errors.Join(words.Apply(k), place.Apply(k))
})

// flagTexts replaces the names of help texts.
var flagTexts = func() *strings.Replacer {
	var pairs []string
	for _, texts := range []kong.Vars{
		flagHelp, config.FlagHelp, evaluate.FlagHelp, simulate.FlagHelp,
	} {
		for name, text := range texts {
			pairs = append(pairs, "${"+name+"}", text)
		}
	}
	return strings.NewReplacer(pairs...)
}()

// execute runs one command line and returns the exit code. Tests call it too.
func execute(ctx context.Context, args []string, con console) int {
	exited := -1
	con.Err, con.closers = printer{con.Err}, new([]func() error)
	parser, err := kong.New(
		&cli{},
		kong.Name("gqlstream"),
		kong.Description(
			"Keeps the shares of labels in communities current while a graph changes."),
		kong.Writers(con.Out, con.Err),
		kong.Exit(func(code int) { exited = code }), // after --help
		helpTexts,
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
	kctx, err := parser.Parse(args)
	if exited >= 0 {
		return exited
	}
	if err != nil {
		fmt.Fprintf(con.Err, "gqlstream: %v\nTry 'gqlstream --help'.\n", err)
		return exitUsage
	}
	err = kctx.Run()
	for _, closer := range slices.Backward(*con.closers) {
		err = errors.Join(err, closer())
	}
	if err != nil {
		fmt.Fprintln(con.Err, "gqlstream:", err)
		if errors.As(err, new(config.UsageError)) {
			return exitUsage
		}
		return exitFailed
	}
	return exitFine
}

// listed names the values of a flag.
func listed[T any](all []T) string {
	return strings.ReplaceAll(strings.Trim(fmt.Sprint(all), "[]"), " ", ",")
}

// stampedVersion is set through the linker by `make build` and `make dist`: the tag of the
// checkout, or its commit.
var stampedVersion string

// version names the release in checkpoints, on the page and in the greeting.
var version = cmp.Or(strings.TrimPrefix(stampedVersion, "v"), recordedVersion())

type versionCmd struct{}

func (versionCmd) Help() string { return "Example:\n  gqlstream version" }

// Run prints the version in one line.
func (versionCmd) Run(con console) error {
	_, err := fmt.Fprintf(con.Out, "gqlstream %s %s %s/%s event schema 1\n",
		version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}

// recordedVersion returns Go's record of the checkout, for builds without the Makefile.
func recordedVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" &&
		info.Main.Version != "(devel)" {
		return strings.TrimPrefix(info.Main.Version, "v")
	}
	return "devel"
}
