package web

import (
	"bytes"
	"context"
	"crypto/tls"
	"embed"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

const (
	headerBytesMax  = 16 << 10
	headerWaitMax   = 5 * time.Second
	readWaitMax     = 10 * time.Second
	writeWaitMax    = 30 * time.Second
	idleWaitMax     = 60 * time.Second
	shutdownWaitMax = 5 * time.Second
)

// Server serves the page, the API and the metrics, and answers on NATS. Write, Status and
// Close may be called from any goroutine.
type Server struct {
	*view
	hosts    map[string]bool
	secrets  atomic.Pointer[Secrets]
	tls      *tls.Config // nil: plain
	registry *prometheus.Registry

	listener  net.Listener // nil: nothing is listened on
	http      *http.Server // nil with it
	answering atomic.Int64 // requests, but for probes
	conns     *connections // the same
	served    chan error
	close     sync.Once
	closed    error
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
	s := &Server{view: newView(c), hosts: c.allowedHosts(), served: make(chan error, 1)}
	secrets, err := s.ReadSecrets()
	if err != nil {
		return nil, err
	}
	s.UseSecrets(secrets)
	if c.Listen == ListenOff {
		return s, nil
	}
	s.tls = s.tlsConfig()
	if err := s.listen(); err != nil {
		return nil, err
	}
	s.registry = prometheus.NewRegistry()
	s.registry.MustRegister(s.metrics, s.metrics.step, s.metrics.stages, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	s.http = &http.Server{
		Handler:           s.handler(),
		ReadHeaderTimeout: headerWaitMax,
		ReadTimeout:       readWaitMax,
		WriteTimeout:      writeWaitMax,
		IdleTimeout:       idleWaitMax,
		MaxHeaderBytes:    headerBytesMax,
		ConnState:         s.conns.changed,
		TLSConfig:         s.tls,
		ErrorLog:          slog.NewLogLogger(c.Logger.Handler(), slog.LevelDebug),
	}
	return s, nil
}

func (s *Server) start() {
	if s.http != nil {
		go s.serve()
	}
}

// listen opens the address, and refuses one that a name led astray.
func (s *Server) listen() error {
	inner, err := net.Listen("tcp", s.config.Listen)
	if err != nil {
		return fmt.Errorf("web: %w", err)
	}
	host, _, _ := net.SplitHostPort(s.config.Listen)
	if tcp, ok := inner.Addr().(*net.TCPAddr); ok && isLoopback(host) && !tcp.IP.IsLoopback() {
		return errors.Join(fmt.Errorf("web: %q leads to %v, which is not a loopback address", s.config.Listen, tcp), inner.Close())
	}
	s.listener = inner
	s.conns = &connections{most: s.config.RequestsMax + idleMax, open: map[net.Conn]time.Time{}}
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
	} else {
		s.config.Logger.Error("web: the server stopped", "error", err)
	}
	s.served <- err
}

// Addr returns the address listened on.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// URL returns the address of the page, "" where there is none.
func (s *Server) URL() string {
	if s.http == nil {
		return ""
	}
	scheme := "http://"
	if s.config.CertFile != "" {
		scheme = "https://"
	}
	return scheme + s.listener.Addr().String() + "/"
}

// Close lets the requests finish for up to five seconds, and frees the address. Later calls return the same.
func (s *Server) Close() error {
	s.close.Do(func() {
		s.end()
		if s.http == nil {
			return
		}
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

// static holds the page: plain files, no build step, nothing from elsewhere.
//
//go:embed static
var static embed.FS

// serveStatic answers with one of our files. Browsers ask again each time, and are told when they
// have it already.
func (s *Server) serveStatic(w http.ResponseWriter, r *http.Request) {
	name := "static" + r.URL.Path
	if r.URL.Path == "/" {
		name += "index.html"
	}
	body, err := static.ReadFile(name)
	if err != nil {
		fail(w, http.StatusNotFound, "there is nothing here")
		return
	}
	w.Header().Set("Cache-Control", "no-cache")
	w.Header().Set("ETag", `"`+s.instance+`"`)
	http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(body))
}
