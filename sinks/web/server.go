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
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"gqlstream/internal/request"
)

const (
	headerBytesMax  = 16 << 10
	headerWaitMax   = 5 * time.Second
	readWaitMax     = 10 * time.Second
	writeWaitMax    = 30 * time.Second
	idleWaitMax     = 60 * time.Second
	shutdownWaitMax = 5 * time.Second
)

// Server serves the page, the API and the metrics, and answers on NATS. Any goroutine may ask it
// and tell it news.
type Server struct {
	*store
	journal
	alertBoard

	config   Config
	instance string // differs after a restart, so that pages reload
	started  time.Time
	hosts    map[string]bool
	secrets

	orders  orderCache
	pages   chan struct{} // large ones that are being made
	waiting chan struct{} // explanations and draws: the current one, and requests that wait
	turn    chan struct{}
	life    context.Context //nolint:containedctx // of explanations and draws
	end     context.CancelFunc

	listener  net.Listener // nil: nothing is listened on
	http      *http.Server // nil with it
	gather    prometheus.Gatherer
	scrape    http.Handler // of metrics
	answering atomic.Int64 // requests, but for probes

	repliesRefused atomic.Uint64 // questions on NATS with a reply that is no inbox
	conns          connections
	served         chan error
	close          sync.Once
	closed         error
}

// New listens, and serves until Close. A configuration that is not safe is an
// error: an address that others can reach needs a token and TLS.
func New(c Config) (*Server, error) {
	s, err := prepare(c)
	if err == nil && s.http != nil {
		go s.serve()
	}
	return s, err
}

// prepare checks the configuration and listens, but does not serve yet.
func prepare(c Config) (*Server, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	c = c.withDefaults()
	s := &Server{
		config:  c,
		started: time.Now(),
		hosts:   c.allowedHosts(),
		store:   newStore(c),
		pages:   make(chan struct{}, largePagesMax),
		waiting: make(chan struct{},
			1+explainQueueMax),
		turn:   make(chan struct{}, 1),
		served: make(chan error, 1),
	}
	s.journal.classes = c.Classes
	s.life, s.end = context.WithCancel(context.Background())
	s.instance = strconv.FormatInt(s.started.UnixNano(), 36)
	s.gather = newMetrics(s)
	s.scrape = promhttp.HandlerFor(s.gather,
		promhttp.HandlerOpts{MaxRequestsInFlight: scrapesMax, Timeout: scrapeWaitMax})
	var err error
	if s.secrets, err = c.readSecrets(); err != nil {
		return nil, err
	}
	if c.Listen == ListenOff {
		return s, nil
	}
	if err := s.listen(); err != nil {
		return nil, err
	}
	s.conns.most.Store(int64(c.RequestsMax + idleMax))
	s.http = &http.Server{
		Handler:           s.handler(),
		ReadHeaderTimeout: headerWaitMax,
		ReadTimeout:       readWaitMax,
		WriteTimeout:      writeWaitMax,
		IdleTimeout:       idleWaitMax,
		MaxHeaderBytes:    headerBytesMax,
		ConnState:         s.conns.changed,
		TLSConfig:         &tls.Config{MinVersion: tls.VersionTLS12, Certificates: s.pair},
		ErrorLog:          slog.NewLogLogger(c.Logger.Handler(), slog.LevelDebug),
	}
	s.conns.server = s.http
	return s, nil
}

// listen opens the address, and refuses one that a name led astray.
func (s *Server) listen() error {
	inner, err := net.Listen("tcp", s.config.Listen)
	if err != nil {
		return err
	}
	host, _, _ := net.SplitHostPort(s.config.Listen)
	if tcp, ok := inner.Addr().(*net.TCPAddr); ok && isLoopback(host) && !tcp.IP.IsLoopback() {
		return errors.Join(
			fmt.Errorf("http: listen %q leads to %v, which is not a loopback address",
				s.config.Listen, tcp),
			inner.Close(),
		)
	}
	s.listener = inner
	return nil
}

func (s *Server) serve() {
	var err error
	if s.pair != nil {
		err = s.http.ServeTLS(s.listener, "", "")
	} else {
		err = s.http.Serve(s.listener)
	}
	if errors.Is(err, http.ErrServerClosed) {
		err = nil
	} else {
		s.config.Logger.Error("the server of the page stopped", "error", err)
	}
	s.served <- err
}

// Addr returns the address listened on.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// URL returns the address of the page, "" where there is none. Where every address is listened on,
// it has a name that requests may use.
func (s *Server) URL() string {
	if s.http == nil {
		return ""
	}
	scheme := "http://"
	if s.config.CertFile != "" {
		scheme = "https://"
	}
	return scheme + s.config.publicAddress(s.listener.Addr()) + "/"
}

// Close lets the requests finish for up to five seconds, and frees the address. Later calls return
// the same.
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
			err = errors.Join(fmt.Errorf("http: close: %w", err), s.http.Close())
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
	s.serveFile(w, r, name)
}

func (s *Server) serveFile(w http.ResponseWriter, r *http.Request, name string) {
	body, err := static.ReadFile(name)
	if err != nil {
		fail(w, http.StatusNotFound, "no such page")
		return
	}
	w.Header().Set("Cache-Control", "no-cache")
	w.Header().Set("ETag", `"`+s.instance+`"`)
	http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(body))
}

// ready reports whether the pipeline runs, and why not.
func (s *Server) ready(now time.Time) (bool, string) {
	for _, sink := range s.config.Sinks() {
		if sink.Condition == request.Holding && now.Sub(sink.Since) >= heldAfter {
			return false, "waiting for " + sink.Name
		}
	}
	switch status, at := s.journal.read(); {
	case at.IsZero():
		return false, "starting"
	case now.Sub(at) > staleAfter:
		return false, "stalled"
	case status.State == "waiting":
		return false, status.Warning
	case status.State != "running":
		return false, "not running"
	case status.Warning != "":
		return true, "ready, but " + status.Warning
	}
	return true, "ready"
}
