package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"gqlstream/incremental/ask"
	"gqlstream/internal/request"
	"gqlstream/quant"
	"gqlstream/sinks"
	"gqlstream/sinks/alerts"
)

// HTTP configures the address of the page, the API and the metrics, and the access to them.
type HTTP struct {
	// empty: ListenDefault; port 0: any free one; ListenOff: no page
	Listen    string   `yaml:"listen"`
	Hosts     []string `yaml:"hosts"`      // further host names or addresses that requests may name
	TokenFile string   `yaml:"token_file"` // file with the access token; empty: none is asked for
	CertFile  string   `yaml:"cert_file"`  // PEM certificate chain; with KeyFile, serves TLS
	KeyFile   string   `yaml:"key_file"`

	// MetricsCommunities bounds the communities in the metrics; nil: MetricsCommunitiesDefault.
	MetricsCommunities *int `yaml:"metrics_communities"`
	// communities with a chart that anybody may embed, without a token
	Public   []string `yaml:"public"`
	Answers  bool     `yaml:"answers"`  // readers of the page may publish labels
	Silences bool     `yaml:"silences"` // readers of the page may silence and acknowledge alerts
}

// ListenDefault is the address where none is configured. ListenOff listens nowhere: questions are
// answered on NATS alone.
const (
	ListenDefault = "127.0.0.1:8090"
	ListenOff     = "off"
)

// Config configures a Server. The comment of a field gives the meaning of its zero value. Classes
// has none.
type Config struct {
	HTTP

	Display alerts.Display // names for people; none: those of the log

	// Publish adds labels to the log, as CSV, and says how many. Nil: the page takes none.
	Publish func(ctx context.Context, csv []byte) (int, error)

	// Note adds a note to the log. Nil: the page takes no silences.
	Note func(ctx context.Context, text string) error

	Pipeline string   // shown on the page
	Version  string   // of the program, shown on the page
	Classes  []string // K names; required

	CommunitiesMax int // further communities are counted, not kept; 0 is 100,000
	RequestsMax    int // requests that are answered at a time, not counting probes; 0 is 256
	// of log time until the smallest change is published; 0: each emission
	Quiet time.Duration

	Questions

	State string // directory of the state, for commands shown
	NATS  string // address of the server, without secrets, for commands shown; "" is not known

	// Sinks returns the states of the sinks, for /readyz, the status and the metrics. Any
	// goroutine calls it. Nil: nothing is known.
	Sinks func() []request.State

	// Deployment returns how the run is deployed, for the metrics. Any goroutine calls it. Nil:
	// nothing is known.
	Deployment func() Deployment

	Kinds, Reasons []string // of events, and of their refusal: metrics count them from 0 on

	Logger *slog.Logger // nil is silent
}

// Questions has the functions that answer the questions of readers. A page needs those that it
// asks.
type Questions struct {
	// Records returns the newest that were published of a community by a method, oldest first.
	// Unless whole is set, there are older ones.
	Records func(context.Context, sinks.RecordsQuery) (list []quant.Estimate, whole bool, err error)

	// InForce returns the record of a community and method that was in force at a log time.
	InForce func(
		ctx context.Context, community, method string, at time.Time,
	) (e quant.Estimate, ok bool, err error)

	// Rollups returns roll-ups of records by minute, hour or day.
	Rollups func(context.Context, sinks.RollupQuery) (sinks.RollupAnswer, error)

	// Explain says why an estimate moved; see ExplainQuery. It reports its progress. It is called
	// once at a time, and ends when its context does. An error that is a *Refusal is shown, any
	// other is logged.
	Explain func(
		ctx context.Context, q ExplainQuery, report func(progress string),
	) (*quant.Explanation, error)
	Ask func(ask.Question) (*ask.Answer, error) // draws people to label
	// Quarantine returns the newest entries of the quarantine, newest first, at most limit, and
	// only those with the reason unless it is empty.
	Quarantine func(ctx context.Context, reason string, limit int) ([]QuarantineEntry, error)
}

const tokenBytesMin = 32

// withDefaults returns c with every zero field set.
func (c Config) withDefaults() Config {
	c.Listen = cmp.Or(c.Listen, ListenDefault)
	c.CommunitiesMax, c.RequestsMax = cmp.Or(c.CommunitiesMax, 100_000), cmp.Or(c.RequestsMax, 256)
	c.Public = append([]string{}, c.Public...)
	for _, names := range []*map[string]string{&c.Display.Communities, &c.Display.Classes} {
		if *names == nil {
			*names = map[string]string{}
		}
	}
	if c.Sinks == nil {
		c.Sinks = func() []request.State { return nil }
	}
	if c.Deployment == nil {
		c.Deployment = func() Deployment { return Deployment{} }
	}
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	return c
}

// Validate reports every setting that cannot be served, the files aside. An
// address that is not a loopback one needs a token and TLS.
func (c HTTP) Validate() error {
	c.Listen = cmp.Or(c.Listen, ListenDefault)
	var errs []error
	bad := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("http: "+format, args...))
	}
	if n := c.communitiesExported(); n < 0 || n > MetricsCommunitiesMax {
		bad("metrics_communities is %d, want 0 to %d", n, MetricsCommunitiesMax)
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
	switch {
	case c.Listen == ListenOff:
		return errors.Join(errs...)
	case err != nil:
		bad("listen %q: want host:port: %w", c.Listen, err)
		return errors.Join(errs...)
	}
	if !isLoopback(host) {
		if c.TokenFile == "" || c.CertFile == "" {
			bad(
				"listen %q is not a loopback address: give a token file and a TLS certificate, "+
					"or listen on 127.0.0.1",
				c.Listen)
		}
		if ip := net.ParseIP(host); len(c.Hosts) == 0 &&
			(host == "" || ip != nil && ip.IsUnspecified()) {
			bad("listen %q is every address: list the names of this machine in hosts", c.Listen)
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
func (c HTTP) allowedHosts() map[string]bool {
	hosts := map[string]bool{"localhost": true, "127.0.0.1": true, "::1": true}
	if host, _, err := net.SplitHostPort(c.Listen); err == nil && host != "" {
		if ip := net.ParseIP(host); ip == nil || !ip.IsUnspecified() {
			hosts[strings.ToLower(host)] = true
		}
	}
	for _, h := range c.Hosts {
		hosts[bareHost(h)] = true
	}
	if host, _, err := net.SplitHostPort(c.Listen); err == nil && !isLoopback(host) {
		hosts[machineName()] = true
	}
	delete(hosts, "")
	return hosts
}

// machineName returns the name that the machine has, "" if it has none that a request can have.
func machineName() string {
	name, err := os.Hostname()
	if err != nil {
		return ""
	}
	return bareHost(name)
}

// publicAddress returns the host and port of an address listened on. Every address stands for the
// machine's name if hosts has it, or else for the first of hosts.
func (c HTTP) publicAddress(listened net.Addr) string {
	tcp, ok := listened.(*net.TCPAddr)
	if !ok || !tcp.IP.IsUnspecified() {
		return listened.String()
	}
	host := machineName()
	if len(c.Hosts) > 0 && (host == "" || !slices.Contains(c.Hosts, host)) {
		host = strings.Trim(c.Hosts[0], "[]")
	}
	return net.JoinHostPort(host, strconv.Itoa(tcp.Port))
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
