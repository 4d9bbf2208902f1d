package web

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"gqlstream/quant"
	"gqlstream/sinks"
)

// Config says where and what to serve. The zero value of each field but Classes
// has the meaning given.
type Config struct {
	Listen    string   // address; "" is 127.0.0.1:8090, port 0 any free one
	Hosts     []string // further host names or addresses to accept in Host
	TokenFile string   // file of mode 0600 with the access token; "" asks for none
	CertFile  string   // PEM certificate chain; with KeyFile, serves TLS
	KeyFile   string

	Pipeline string   // shown in the dashboard
	Version  string   // of the program, shown in the dashboard
	Classes  []string // K names; required

	HistoryMax      int           // records per community and method; 0 is 512
	HistoryBytesMax int           // all histories together, about; 0 is 256 MiB
	CommunitiesMax  int           // further communities are counted, not kept; 0 is 100,000
	MetricsMax      int           // communities in /metrics; 0 is 1,000
	ConnectionsMax  int           // connections that are not event streams; 0 is 256
	StreamsMax      int           // event streams; 0 is 1,000
	StreamEvery     time.Duration // least time between two messages of estimates; 0 is 200 ms

	// History returns the estimates of a community and method with a log time in
	// [from, to], oldest first; a zero time is unbounded. Unless whole is set, some
	// are left out. Nil: memory only.
	History func(ctx context.Context, community, method string, from, to time.Time) (
		list []quant.Estimate, whole bool, err error)

	// Explain says why an estimate moved; see ExplainQuery. It is called once at a
	// time, and ends when its context does. An error that is a *Refusal is shown, any
	// other is logged. Nil: nothing is explained.
	Explain func(context.Context, ExplainQuery) (*quant.Explanation, error)

	// Sinks returns how the sinks do, for /readyz, the status and the metrics. Any
	// goroutine calls it. Nil: nothing is known.
	Sinks func() []sinks.State

	Logger *slog.Logger // nil is silent
}

const (
	listenDefault         = "127.0.0.1:8090"
	historyDefault        = 512
	historyBytesDefault   = 256 << 20
	communitiesDefault    = 100_000
	metricsDefault        = 1_000
	connectionsMaxDefault = 256
	streamsMaxDefault     = 1_000
	streamEveryDefault    = 200 * time.Millisecond

	tokenBytesMin = 32
	tokenBytesMax = 4096
)

// withDefaults returns c with every zero field set.
func (c Config) withDefaults() Config {
	if c.Listen == "" {
		c.Listen = listenDefault
	}
	for _, d := range []struct {
		field *int
		value int
	}{
		{&c.HistoryMax, historyDefault},
		{&c.HistoryBytesMax, historyBytesDefault},
		{&c.CommunitiesMax, communitiesDefault},
		{&c.MetricsMax, metricsDefault},
		{&c.ConnectionsMax, connectionsMaxDefault},
		{&c.StreamsMax, streamsMaxDefault},
	} {
		if *d.field == 0 {
			*d.field = d.value
		}
	}
	if c.StreamEvery == 0 {
		c.StreamEvery = streamEveryDefault
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// Validate reports every setting that cannot be served, the files aside. An
// address that is not a loopback one needs a token and TLS.
func (c Config) Validate() error {
	c = c.withDefaults()
	var errs []error
	bad := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("web: "+format, args...))
	}
	if len(c.Classes) == 0 {
		bad("no classes")
	}
	seen := map[string]bool{}
	for _, name := range c.Classes {
		if name == "" || !utf8.ValidString(name) || seen[name] {
			bad("class %q is empty, not UTF-8, or named twice", name)
		}
		seen[name] = true
	}
	for _, n := range []struct {
		name  string
		value int
	}{
		{"history", c.HistoryMax},
		{"history bytes", c.HistoryBytesMax},
		{"communities", c.CommunitiesMax},
		{"metrics", c.MetricsMax},
		{"connections", c.ConnectionsMax},
		{"streams", c.StreamsMax},
		{"stream period", int(c.StreamEvery)},
	} {
		if n.value < 0 {
			bad("%s limit %d is negative", n.name, n.value)
		}
	}
	if (c.CertFile == "") != (c.KeyFile == "") {
		bad("TLS needs both a certificate file and a key file")
	}
	for _, h := range c.Hosts {
		if bareHost(h) == "" {
			bad("host %q is not a host name or an address without a port", h)
		}
	}
	host, _, err := net.SplitHostPort(c.Listen)
	if err != nil {
		bad("listen %q: want host:port: %w", c.Listen, err)
		return errors.Join(errs...)
	}
	if !isLoopback(host) {
		if c.TokenFile == "" || c.CertFile == "" {
			bad("listen %q is not a loopback address: give a token file and a TLS certificate, "+
				"or listen on 127.0.0.1", c.Listen)
		}
		if ip := net.ParseIP(host); len(c.Hosts) == 0 && (host == "" || ip != nil && ip.IsUnspecified()) {
			bad("listen %q is every address: name in hosts what clients call this machine", c.Listen)
		}
	}
	return errors.Join(errs...)
}

// isLoopback reports whether host, without a port, can only mean this machine.
func isLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// allowedHosts returns the names that a Host header may hold, in lower case.
func (c Config) allowedHosts() map[string]bool {
	hosts := map[string]bool{"localhost": true, "127.0.0.1": true, "::1": true}
	if host, _, err := net.SplitHostPort(c.Listen); err == nil && host != "" {
		if ip := net.ParseIP(host); ip == nil || !ip.IsUnspecified() {
			hosts[strings.ToLower(host)] = true
		}
	}
	for _, h := range c.Hosts {
		hosts[bareHost(h)] = true
	}
	return hosts
}

// bareHost returns a configured host as hostName returns that of a request.
func bareHost(h string) string {
	if ip := net.ParseIP(strings.Trim(h, "[]")); ip != nil {
		return strings.ToLower(strings.Trim(h, "[]"))
	}
	if strings.ContainsAny(h, ":/ []") {
		return ""
	}
	return strings.ToLower(h)
}

// readToken reads the token file, which nobody else may read.
func readToken(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", fmt.Errorf("web: token: %w", err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return "", fmt.Errorf("web: token file %s has mode %#o, others can read it: chmod 600 it",
			path, info.Mode().Perm())
	}
	if info.Size() > tokenBytesMax {
		return "", fmt.Errorf("web: token file %s has %d bytes, at most %d are read",
			path, info.Size(), tokenBytesMax)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("web: token: %w", err)
	}
	token := strings.TrimSpace(string(data))
	if len(token) < tokenBytesMin || strings.ContainsAny(token, " \t\r\n") {
		return "", fmt.Errorf("web: token in %s: want one word of at least %d characters, "+
			"such as the output of 'openssl rand -hex 32'", path, tokenBytesMin)
	}
	return token, nil
}
