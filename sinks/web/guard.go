package web

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"net"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
)

// contentPolicy allows our own files and nothing else: no inline code or style,
// no foreign address, no framing, and no sink that would read a string as HTML.
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; " +
	"connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; " +
	"require-trusted-types-for 'script'; trusted-types 'none'"

// route is one address of the API. The OpenAPI file lists the same.
type route struct {
	pattern string
	params  []string // of the query; any other is refused
	handle  func(*Server, http.ResponseWriter, *http.Request, url.Values)
	open    bool // no token is asked for
}

func routes() []route {
	return []route{
		{pattern: "/api/v1/info", handle: (*Server).serveInfo},
		{pattern: "/api/v1/status", params: []string{"history"}, handle: (*Server).serveStatus},
		{
			pattern: "/api/v1/communities",
			params:  []string{"q", "method", "sort", "order", "class", "offset", "limit", "trend"},
			handle:  (*Server).serveCommunities,
		},
		{pattern: "/api/v1/communities/{name}", handle: (*Server).serveCommunity},
		{
			pattern: "/api/v1/communities/{name}/estimates",
			params:  []string{"method", "from", "to", "limit", "points"},
			handle:  (*Server).serveEstimates,
		},
		{pattern: "/api/v1/alerts", params: []string{"community", "limit"}, handle: (*Server).serveAlerts},
		{
			pattern: "/api/v1/communities/{name}/explain",
			params:  []string{"from", "to", "method"},
			handle:  (*Server).serveExplain,
		},
		{pattern: "/api/v1/stream", params: []string{"community", "events"}, handle: (*Server).serveStream},
		{pattern: "/metrics", handle: (*Server).serveMetrics},
		{pattern: "/healthz", handle: (*Server).serveHealth, open: true},
		{pattern: "/readyz", handle: (*Server).serveReady, open: true},
	}
}

// handler returns the routes behind the guard.
func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	for _, rt := range routes() {
		mux.HandleFunc(rt.pattern, func(w http.ResponseWriter, r *http.Request) {
			if !rt.open && !s.authorized(w, r) {
				return
			}
			if query, ok := readQuery(w, r, rt.params); ok {
				rt.handle(s, w, r, query)
			}
		})
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if s.authorized(w, r) {
			serveStatic(w, r)
		}
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.admit(w, r) {
			mux.ServeHTTP(w, r)
		}
	})
}

// admit sets the headers that every answer has, and refuses what no route takes.
func (s *Server) admit(w http.ResponseWriter, r *http.Request) bool {
	h := w.Header()
	h.Set("Content-Security-Policy", contentPolicy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
	h.Set("Cache-Control", "no-store")
	host := hostName(r.Host)
	switch {
	case !s.hosts[host]:
		fail(w, http.StatusMisdirectedRequest, "this host name is not served; name it in the configuration's hosts")
	case r.Method != http.MethodGet:
		h.Set("Allow", http.MethodGet)
		fail(w, http.StatusMethodNotAllowed, "only GET is served")
	case r.ContentLength != 0 || len(r.TransferEncoding) > 0:
		h.Set("Connection", "close")
		fail(w, http.StatusRequestEntityTooLarge, "no request has a body here")
	case foreign(r, host):
		fail(w, http.StatusForbidden, "requests of other sites are not served")
	case !plainPath(r.URL.EscapedPath()):
		fail(w, http.StatusBadRequest, "the path is not in its plain form")
	default:
		return true
	}
	return false
}

// hostName returns the host of a Host header in lower case, without the port;
// "" when it is not well formed.
func hostName(header string) string {
	host, port := header, ""
	if i := strings.LastIndexByte(header, ':'); i >= 0 && !strings.HasSuffix(header, "]") {
		host, port = header[:i], header[i+1:]
		if _, err := strconv.ParseUint(port, 10, 16); err != nil {
			return ""
		}
	}
	if strings.HasPrefix(host, "[") != strings.HasSuffix(host, "]") {
		return ""
	}
	if strings.HasPrefix(host, "[") {
		host = host[1 : len(host)-1]
		if ip := net.ParseIP(host); ip == nil || ip.To4() != nil {
			return ""
		}
		return strings.ToLower(host)
	}
	if strings.ContainsAny(host, ":[]") {
		return ""
	}
	return strings.ToLower(host)
}

// foreign reports whether a browser says that another site's page asks. A link
// to the dashboard is not foreign; reading anything from another page is.
func foreign(r *http.Request, host string) bool {
	if origin := r.Header.Get("Origin"); origin != "" {
		u, err := url.Parse(origin)
		if err != nil || hostName(u.Host) != host || u.Host != r.Host {
			return true
		}
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin", "none":
		return false
	}
	return r.Header.Get("Sec-Fetch-Mode") != "navigate" || r.Header.Get("Sec-Fetch-Dest") != "document"
}

// plainPath reports whether an escaped path needs no cleaning, so that the mux
// never redirects.
func plainPath(escaped string) bool {
	clean := escaped == "/" || path.Clean(escaped) == strings.TrimSuffix(escaped, "/")
	return strings.HasPrefix(escaped, "/") && clean && !strings.ContainsAny(escaped, "\\\x00")
}

// authorized checks the token, if there is one: as a bearer token, or as the
// password of any user, which is what a browser can send for a page.
func (s *Server) authorized(w http.ResponseWriter, r *http.Request) bool {
	token := s.secrets.Load().token
	if token == nil {
		return true
	}
	given := ""
	if _, password, ok := r.BasicAuth(); ok {
		given = password
	} else if scheme, rest, ok := strings.Cut(r.Header.Get("Authorization"), " "); ok && strings.EqualFold(scheme, "Bearer") {
		given = rest
	}
	digest := sha256.Sum256([]byte(given))
	if subtle.ConstantTimeCompare(digest[:], token[:]) == 1 {
		return true
	}
	w.Header().Set("WWW-Authenticate", `Basic realm="gqlstream: any name, the token as the password", charset="UTF-8"`)
	fail(w, http.StatusUnauthorized, "a token is needed: Authorization: Bearer, or as a password")
	return false
}

// readQuery parses the query and refuses parameters that the route does not have.
func readQuery(w http.ResponseWriter, r *http.Request, params []string) (url.Values, bool) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		fail(w, http.StatusBadRequest, "the query is not well formed")
		return nil, false
	}
	for name, values := range query {
		if !slices.Contains(params, name) {
			fail(w, http.StatusBadRequest, "unknown parameter "+strconv.Quote(name))
			return nil, false
		}
		if len(values) > 1 && name != "community" {
			fail(w, http.StatusBadRequest, "parameter "+name+" is given more than once")
			return nil, false
		}
	}
	return query, true
}

// answer writes a value as JSON.
func answer(w http.ResponseWriter, value any) { answerCode(w, http.StatusOK, value) }

// problem is the body of every refusal.
type problem struct {
	Error string `json:"error"`
}

// fail writes a refusal.
func fail(w http.ResponseWriter, code int, message string) {
	answerCode(w, code, problem{message})
}

func answerCode(w http.ResponseWriter, code int, value any) {
	data, err := json.Marshal(value)
	if err != nil {
		http.Error(w, "internal error", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(append(data, '\n'))
}
