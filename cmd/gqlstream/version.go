package main

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
)

// stampedVersion is set through the linker by `make build` and `make dist`: the tag of the
// checkout, or its commit.
var stampedVersion string

// version is the release, as checkpoints, the page and the greeting say it.
var version = cmp.Or(strings.TrimPrefix(stampedVersion, "v"), recordedVersion())

type versionCmd struct{}

func (versionCmd) Help() string { return "Example:\n  gqlstream version" }

// Run prints the version in one line.
func (versionCmd) Run(con console) error {
	_, err := fmt.Fprintf(con.Out, "gqlstream %s %s %s/%s event schema 1\n", version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}

// recordedVersion returns what Go recorded of the checkout, for builds that no Makefile made.
func recordedVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "devel"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return strings.TrimPrefix(v, "v")
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return s.Value[:12]
		}
	}
	return "devel"
}
