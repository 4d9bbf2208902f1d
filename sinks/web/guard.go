package web

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"gqlstream/sinks"
)

// contentPolicy allows our own files and nothing else: no inline code or style,
// no foreign address, no framing, and no sink that would read a string as HTML. A picture may be
// one that the page has drawn itself, to save it.
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; " +
	"img-src 'self' blob:; " +
	"connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; " +
	"frame-ancestors 'none'; " +
	"require-trusted-types-for 'script'; trusted-types 'none'"

// route is one address of the API. The OpenAPI file lists the same.
type route struct {
	pattern string
	params  []string // of the query; others are refused

	ask  question      // for HTTP and NATS; nil: handle answers
	name string        // its name on NATS; empty: HTTP only
	wait time.Duration // for the answer; 0: questionWaitMax

	handle func(*Server, http.ResponseWriter, *http.Request) // for HTTP only
	open   bool                                              // without a token
	post   bool                                              // POST only
	beside bool                                              // not counted as a request
}

// routes lists every address of the API and of the checks.
func routes() []route {
	return slices.Concat(pipelineRoutes(), communityRoutes(), checkRoutes())
}

// communityRoutes are the addresses about communities.
func communityRoutes() []route {
	const community = "/api/v1/communities/{name}"
	list := []string{
		"q", "flag", "method", "sort", "order", "class",
		"offset", "limit", "trend", "gone", "format",
	}
	records := []string{"method", "from", "to", "limit", "format"}
	points := []string{"method", "from", "to", "points"}
	history := append(slices.Clone(points), "format")
	explain := []string{"from", "to", "method"}
	difference := []string{"other", "at", "until", "method", "format"}
	return []route{
		{pattern: "/api/v1/communities", params: list, ask: askList, name: "list"},
		{pattern: community, params: []string{"format"}, ask: askCommunity, name: "latest"},
		{pattern: community + "/estimates", params: records, ask: askEstimates},
		{pattern: community + "/history", params: history, ask: askHistory, name: "history"},
		{
			pattern: community + "/explain", params: explain, ask: askExplain,
			name: "explain", wait: explainWaitMax,
		},
		{
			pattern: community + "/ask", params: []string{"count"}, ask: askWhom,
			wait: explainWaitMax,
		},
		{pattern: community + "/difference", params: difference, ask: askDifference},
		{
			pattern: embedPath + "{name}", params: embedParams, open: true,
			handle: (*Server).serveEmbed,
		},
		{pattern: embedPath + "{name}/data", params: points, open: true, ask: askEmbedded},
		{pattern: "/api/v1/estimates", params: []string{"community", "after"}, ask: askChanged},
	}
}

// pipelineRoutes are the addresses about the pipeline as a whole.
func pipelineRoutes() []route {
	return []route{
		{pattern: "/api/v1/info", ask: askInfo, name: "info"},
		{pattern: "/api/v1/status", ask: askStatus},
		{pattern: "/api/v1/alerts", params: []string{"community", "limit"}, ask: askAlerts},
		{pattern: "/api/v1/classifier", ask: askClassifier},
		{pattern: "/api/v1/alerts/silence", post: true, handle: (*Server).serveSilence},
		{pattern: "/api/v1/labels", post: true, handle: (*Server).serveLabels},
		{pattern: "/api/v1/quarantine", params: []string{"reason", "limit"}, ask: askQuarantine},
	}
}

// checkRoutes are the addresses for monitoring.
func checkRoutes() []route {
	metrics := func(s *Server, w http.ResponseWriter, r *http.Request) { s.scrape.ServeHTTP(w, r) }
	alive := func(_ *Server, w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "ok", http.StatusOK)
	}
	return []route{
		{pattern: "/metrics", beside: true, handle: metrics},
		{pattern: "/healthz", open: true, beside: true, handle: alive},
		{pattern: "/readyz", open: true, beside: true, handle: (*Server).serveReady},
	}
}

// embedParams are read by the page of a chart to embed.
var embedParams = []string{
	"class", "method", "range", "from", "to", "title", "note", "source", "color", "colors", "theme",
}

// handler returns the routes behind the guard.
func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	beside, post := map[string]bool{}, map[string]bool{}
	for _, rt := range routes() {
		beside[rt.pattern], post[rt.pattern] = rt.beside, rt.post
		mux.HandleFunc(rt.pattern, func(w http.ResponseWriter, r *http.Request) {
			if !rt.open && !s.authorized(w, r) {
				return
			}
			query, ok := readQuery(w, r, rt.params)
			switch {
			case !ok:
			case rt.ask != nil:
				s.serveQuestion(w, r, &rt, query)
			default:
				rt.handle(s, w, r)
			}
		})
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if s.isEmbed(r.URL.Path) || s.authorized(w, r) {
			s.serveStatic(w, r)
		}
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !beside[r.URL.Path] {
			defer s.answering.Add(-1)
			if s.answering.Add(1) > int64(s.config.RequestsMax) {
				w.Header().Set("Connection", "close")
				fail(w, http.StatusServiceUnavailable, "too many requests are being answered")
				return
			}
		}
		if s.admit(w, r, post[r.URL.Path]) {
			mux.ServeHTTP(w, r)
		}
	})
}

// admit sets the headers of every answer, and refuses requests without a route.
func (s *Server) admit(w http.ResponseWriter, r *http.Request, post bool) bool {
	h, allowed := w.Header(), []string{http.MethodGet, http.MethodHead}
	if post {
		allowed = []string{http.MethodPost}
	}
	h.Set("Content-Security-Policy", contentPolicy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
	h.Set("Cache-Control", "no-store")
	if s.isEmbed(r.URL.Path) {
		allowFraming(h)
	}
	switch {
	case !s.hosts[hostName(r.Host)] && !isOwnAddress(r):
		fail(w, http.StatusMisdirectedRequest,
			"this host name is not served; name it in the configuration's hosts")
	case !slices.Contains(allowed, r.Method):
		h.Set("Allow", strings.Join(allowed, ", "))
		fail(w, http.StatusMethodNotAllowed, "only "+strings.Join(allowed, " and ")+" is served")
	case !post && (r.ContentLength != 0 || len(r.TransferEncoding) > 0):
		h.Set("Connection", "close")
		fail(w, http.StatusRequestEntityTooLarge, "no request has a body here")
	case foreign(r) && !s.framed(r):
		fail(w, http.StatusForbidden, "requests of other sites are not served; a proxy has to "+
			"pass on the host (nginx: proxy_set_header Host $http_host)")
	case !plainPath(r.URL.EscapedPath()):
		fail(w, http.StatusBadRequest, "the path is not in its plain form")
	default:
		return true
	}
	return false
}

// isOwnAddress reports whether a request names the address that its connection came to. No site can
// lead a browser here under another name by that.
func isOwnAddress(r *http.Request) bool {
	local, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	return ok && hostName(r.Host) == local.IP.String()
}

// hostName returns the host of a Host header in lower case, without the port; "" when it is not
// well formed.
func hostName(header string) string {
	u, err := url.Parse("http://" + header)
	if err != nil || u.Host != header {
		return ""
	}
	if _, err := strconv.ParseUint(cmp.Or(u.Port(), "80"), 10, 16); err != nil {
		return ""
	}
	return strings.ToLower(u.Hostname())
}

// foreign reports whether a browser says that another site's page asks. A link
// to the page is not foreign; reading anything from another page is. Browsers alone set
// Sec-Fetch-Site, so it holds behind a proxy that sends a Host of its own. Browsers leave it out
// over HTTP beyond this machine; there Origin must name the Host.
func foreign(r *http.Request) bool {
	if r.Header.Get("Sec-Fetch-Site") == "same-origin" {
		return false
	}
	if origin := r.Header.Get("Origin"); origin != "" {
		u, err := url.Parse(origin)
		if err != nil || u.Host != r.Host {
			return true
		}
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "none":
		return false
	}
	return r.Header.Get("Sec-Fetch-Mode") != "navigate" ||
		r.Header.Get("Sec-Fetch-Dest") != "document"
}

// framed reports whether a page of another site frames a chart that it may frame.
func (s *Server) framed(r *http.Request) bool {
	return s.isEmbed(r.URL.Path) && r.Header.Get("Sec-Fetch-Mode") == "navigate" &&
		r.Header.Get("Origin") == ""
}

// plainPath reports whether an escaped path needs no cleaning, so that the mux never redirects.
func plainPath(escaped string) bool {
	clean := escaped == "/" || path.Clean(escaped) == strings.TrimSuffix(escaped, "/")
	return strings.HasPrefix(escaped, "/") && clean && !strings.ContainsAny(escaped, "\\\x00")
}

// authorized checks the token, if there is one: as a bearer token, or as the
// password of any user, as a browser sends it.
func (s *Server) authorized(w http.ResponseWriter, r *http.Request) bool {
	if s.token == nil {
		return true
	}
	_, given, _ := r.BasicAuth()
	if scheme, rest, ok := strings.Cut(r.Header.Get("Authorization"), " "); ok &&
		strings.EqualFold(scheme, "Bearer") {
		given = rest
	}
	digest := sha256.Sum256([]byte(given))
	if subtle.ConstantTimeCompare(digest[:], s.token[:]) == 1 {
		return true
	}
	w.Header().Set("WWW-Authenticate",
		`Basic realm="gqlstream: any name, the token as the password", charset="UTF-8"`)
	fail(w, http.StatusUnauthorized, "a token is needed: Authorization: Bearer, or as a password")
	return false
}

func (s *Server) serveReady(w http.ResponseWriter, _ *http.Request) {
	code := http.StatusOK
	ready, why := s.ready(time.Now())
	if !ready {
		code = http.StatusServiceUnavailable
	}
	http.Error(w, why, code) // plain text for every code
}

// secrets are the contents of the secret files.
type secrets struct {
	token *[sha256.Size]byte // digest; nil: no token is asked for
	pair  []tls.Certificate  // one, or none for a plain server
}

// ValidateFiles reports why the files of the token and the certificate cannot be served with.
func (c HTTP) ValidateFiles() error {
	_, err := c.readSecrets()
	return err
}

// readSecrets reads the files of the token and the certificate.
func (c HTTP) readSecrets() (out secrets, err error) {
	if c.TokenFile != "" {
		token, err := sinks.ReadSecret(c.TokenFile, tokenBytesMin)
		if err == nil && bytes.ContainsAny(token, " \t\r\n") {
			err = fmt.Errorf("%s holds more than one word", c.TokenFile)
		}
		if err != nil {
			return out, fmt.Errorf("http: token: %w", err)
		}
		digest := sha256.Sum256(token)
		out.token = &digest
	}
	if c.CertFile != "" {
		pair, err := tls.LoadX509KeyPair(c.CertFile, c.KeyFile)
		if err != nil {
			return out, fmt.Errorf("http: certificate: %w", err)
		}
		out.pair = []tls.Certificate{pair}
	}
	return out, nil
}
