package pipeline

import (
	"cmp"
	"os"
	"runtime"
	"runtime/debug"
	"time"

	"gqlstream/sinks"
)

// architecture names the processor and its instruction level. Together with the program they decide
// the last bits of floating-point results.
func architecture() string {
	arch := runtime.GOARCH
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return arch
	}
	for _, s := range info.Settings {
		if s.Key == "GOAMD64" || s.Key == "GOARM64" {
			arch += " " + s.Value
		}
	}
	return arch
}

// identity describes this process for the marks that it writes to the output stream.
func identity(since time.Time) sinks.Identity {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return sinks.Identity{Host: host, PID: os.Getpid(), Since: cmp.Or(since, time.Now().UTC())}
}
