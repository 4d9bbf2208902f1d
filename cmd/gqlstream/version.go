package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// version is the release; builds from a checkout add the revision.
const version = "0.1.0"

type versionCmd struct{}

func (versionCmd) Help() string { return "Example:\n  gqlstream version" }

// Run prints the version in one line.
func (versionCmd) Run(con console) error {
	revision := ""
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" && len(s.Value) >= 12 {
				revision = " " + s.Value[:12]
			}
		}
	}
	_, err := fmt.Fprintf(con.Out, "gqlstream %s%s %s event schema %d\n",
		version, revision, runtime.Version(), 1)
	return err
}
