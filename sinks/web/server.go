package web

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"gqlstream/quant"
)

const (
	headerBytesMax  = 16 << 10
	headerWaitMax   = 5 * time.Second
	readWaitMax     = 10 * time.Second
	writeWaitMax    = 30 * time.Second
	idleWaitMax     = 60 * time.Second
	shutdownWaitMax = 5 * time.Second
)

// Server serves the page and the API. Write, Status and Close may be called from
// any goroutine.
type Server struct {
	config   Config
	instance string // differs after a restart, so that pages know to read anew
	hosts    map[string]bool
	secrets  atomic.Pointer[Secrets]
	tls      *tls.Config // nil: plain
	started  time.Time

	store    *store
	journal  journal
	orders   orderCache
	alerts   alertBoard
	hub      *hub
	turns    turns // of explanations
	metrics  *metrics
	registry *prometheus.Registry

	listener *listener
	http     *http.Server
	served   chan error
	close    sync.Once
	closed   error
}

// New listens, and serves until Close. A configuration that is not safe is an
// error: an address that others can reach needs a token and TLS.
func New(c Config) (*Server, error) {
	s, err := prepare(c)
	if err != nil {
		return nil, err
	}
	s.start()
	return s, nil
}

// prepare checks the configuration and listens, but does not serve yet.
func prepare(c Config) (*Server, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	c = c.withDefaults()
	s := &Server{
		config: c, hosts: c.allowedHosts(), started: time.Now(),
		store: newStore(c), turns: newTurns(), served: make(chan error, 1),
	}
	s.instance = strconv.FormatInt(s.started.UnixNano(), 36)
	secrets, err := s.ReadSecrets()
	if err != nil {
		return nil, err
	}
	s.UseSecrets(secrets)
	s.tls = s.tlsConfig()
	if err := s.listen(); err != nil {
		return nil, err
	}
	s.metrics = newMetrics(s)
	s.registry = prometheus.NewRegistry()
	s.registry.MustRegister(s.metrics)
	s.hub = newHub(s)
	s.http = &http.Server{
		Handler:           s.handler(),
		ReadHeaderTimeout: headerWaitMax,
		ReadTimeout:       readWaitMax,
		WriteTimeout:      writeWaitMax,
		IdleTimeout:       idleWaitMax,
		MaxHeaderBytes:    headerBytesMax,
		ConnContext:       rememberConn,
		TLSConfig:         s.tls,
		ErrorLog:          slog.NewLogLogger(c.Logger.Handler(), slog.LevelDebug),
	}
	return s, nil
}

func (s *Server) start() {
	go s.hub.run()
	go s.serve()
}

// listen opens the address, and refuses one that a name led astray.
func (s *Server) listen() error {
	inner, err := net.Listen("tcp", s.config.Listen)
	if err != nil {
		return fmt.Errorf("web: %w", err)
	}
	host, _, _ := net.SplitHostPort(s.config.Listen)
	if tcp, ok := inner.Addr().(*net.TCPAddr); ok && isLoopback(host) && !tcp.IP.IsLoopback() {
		return errors.Join(fmt.Errorf("web: %q leads to %v, which is not a loopback address", s.config.Listen, tcp),
			inner.Close())
	}
	s.listener = newListener(inner, s.config.ConnectionsMax)
	return nil
}

func (s *Server) serve() {
	var err error
	if s.tls != nil {
		err = s.http.ServeTLS(s.listener, "", "")
	} else {
		err = s.http.Serve(s.listener)
	}
	if errors.Is(err, http.ErrServerClosed) {
		err = nil
	}
	if err != nil {
		s.config.Logger.Error("web: the server stopped", "error", err)
	}
	s.served <- err
}

// Addr returns the address listened on.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// URL returns the address of the dashboard.
func (s *Server) URL() string {
	scheme := "http://"
	if s.config.CertFile != "" {
		scheme = "https://"
	}
	return scheme + s.listener.Addr().String() + "/"
}

// Write stores the estimates and wakes the event streams. It never waits for a
// reader. The slice stays the caller's. Estimates that hold NaN or the wrong
// number of classes are left out and named in the error.
func (s *Server) Write(_ context.Context, estimates []quant.Estimate) error {
	if len(estimates) == 0 {
		return nil
	}
	err := s.store.write(estimates, time.Now())
	s.hub.wakeUp()
	return err
}

// Load stores estimates that were published before this server began, the latest of
// each community say. They count as received at their log time. Call it before the
// first Write.
func (s *Server) Load(estimates []quant.Estimate) error {
	var errs []error
	for i := range estimates {
		at, err := time.Parse(time.RFC3339Nano, estimates[i].Time)
		if err != nil {
			at = s.started
		}
		errs = append(errs, s.store.write(estimates[i:i+1], at))
	}
	return errors.Join(errs...)
}

// Status stores what the run loop says of itself. It is cheap: call it after
// every step. Maps and slices stay the caller's.
func (s *Server) Status(status Status) {
	s.metrics.observe(status)
	if s.journal.push(status, time.Now(), func() float64 { return s.store.totals().certificate }) {
		s.hub.statusChanged()
	}
}

// Define says how communities are defined, in words for people, instead of what an
// earlier call said. Communities without a definition may be left out. The map
// becomes the server's.
func (s *Server) Define(definitions map[string]string) {
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	s.store.definitions = definitions
}

// Close tells the event streams to reconnect, lets the other requests finish for
// up to five seconds, and frees the address. Later calls return the same.
func (s *Server) Close() error {
	s.close.Do(func() {
		s.hub.stop()
		ctx, cancel := context.WithTimeout(context.Background(), shutdownWaitMax)
		defer cancel()
		err := s.http.Shutdown(ctx)
		if err != nil {
			err = errors.Join(fmt.Errorf("web: close: %w", err), s.http.Close())
		}
		s.closed = errors.Join(err, <-s.served)
	})
	return s.closed
}
