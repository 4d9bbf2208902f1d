package web

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"
)

// A chart to embed is one page with one picture of one community that http.public lists. Anybody
// may read it and any site may frame it. It shows the published records of that community, no more.

const embedPath = "/embed/"

// embedPolicy is contentPolicy for a page that other sites may frame.
var embedPolicy = strings.Replace(contentPolicy, "frame-ancestors 'none'", "frame-ancestors *", 1)

// embedFiles are the static files that such a page loads.
var embedFiles = []string{
	"/embed.css", "/icon.svg", "/js/api.js", "/js/dom.js", "/js/embed.js", "/js/format.js",
	"/js/picture.js", "/js/scale.js", "/js/series.js", "/js/time.js",
}

// isEmbed reports whether a path belongs to charts that are embedded, as far as there are any.
func (s *Server) isEmbed(path string) bool {
	return len(s.config.Public) > 0 &&
		(strings.HasPrefix(path, embedPath) || slices.Contains(embedFiles, path))
}

// embedded is the content of a chart to embed.
type embedded struct {
	Name       string       `json:"name"`
	Display    string       `json:"display"` // name for people
	Classes    []string     `json:"classes"` // names for people
	Labels     []string     `json:"labels"`  // names of the classes in the log
	Pipeline   string       `json:"pipeline"`
	Confidence float64      `json:"confidence"`
	LogTime    *time.Time   `json:"log_time"` // the value is in force until then
	Headline   Headline     `json:"headline"`
	History    rollupAnswer `json:"history"`

	// The newest estimate. The bounds of a roll-up are the widest of its period.
	Prevalence []float64 `json:"prevalence"`
	Low        []float64 `json:"low"`
	High       []float64 `json:"high"`
}

// askEmbedded answers with the history of a public community.
func askEmbedded(ctx context.Context, s *Server, q *params) (any, error) {
	name := q.query.Get("community")
	if !slices.Contains(s.config.Public, name) {
		return nil, refuse(http.StatusNotFound,
			"%s is not public; http.public in the configuration lists public communities", name)
	}
	latest, err := s.latest(q, name)
	if err != nil {
		return nil, err
	}
	answer, err := askHistory(ctx, s, q)
	history, ok := answer.(rollupAnswer)
	if err != nil || !ok {
		return nil, err
	}
	status, _ := s.journal.read()
	out := embedded{
		Name: name, Display: s.config.Display.Name(name), Pipeline: s.config.Pipeline,
		Confidence: latest.Confidence, LogTime: status.LogTime, History: history,
		Headline: s.headline(time.Now()), Labels: s.config.Classes,
		Prevalence: append([]float64{}, latest.Prevalence...), // never null
		Low:        append([]float64{}, latest.Low...),
		High:       append([]float64{}, latest.High...),
	}
	for _, class := range s.config.Classes {
		out.Classes = append(out.Classes, s.config.Display.Class(class))
	}
	return out, nil
}

// serveEmbed answers with the page of a chart to embed. The page alone reads the rest of the
// address after the name.
func (s *Server) serveEmbed(w http.ResponseWriter, r *http.Request) {
	if !slices.Contains(s.config.Public, r.PathValue("name")) {
		fail(w, http.StatusNotFound, "this community is not public; see http.public")
		return
	}
	s.serveFile(w, r, "static/embed.html")
}

// allowFraming sets the headers of a page that other sites may frame.
func allowFraming(h http.Header) {
	h.Set("Content-Security-Policy", embedPolicy)
	h.Set("Cross-Origin-Resource-Policy", "cross-origin")
	h.Del("X-Frame-Options")
	h.Del("Cross-Origin-Opener-Policy")
}
