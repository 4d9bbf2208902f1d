package pipeline

import (
	"fmt"
	"log/slog"
	"maps"
	"time"

	"gqlstream/graphstore"
	"gqlstream/sinks/web"
)

// The definitions of more than definitionsFew communities are checked this often at most, but at
// once after a configure event, because a log may be quiet for long after a step.
const (
	definitionsEvery = time.Second
	definitionsFew   = 64
)

type definitions struct {
	texts map[string]string // by name; shared with the page
	// how often each rule met values that it cannot compare, by community; shared with the shown
	// status
	// map too
	misses map[string]uint64
	gone   map[string]bool // communities without members; shared with the page
	due    time.Time
}

// show passes the rules of communities to the page, in words, when they have changed, and warns
// once about each rule that met values of another type.
func (d *definitions) show(view graphstore.View, page *web.Server, log *slog.Logger, atOnce bool) {
	now := time.Now()
	if now.Before(d.due) && view.Communities() > definitionsFew && !atOnce {
		return
	}
	texts := map[string]string{}
	misses := map[string]uint64{}
	gone := map[string]bool{}
	for c := range graphstore.Community(view.Communities()) {
		if text := inWords(view, c); text != "" {
			texts[view.CommunityName(c)] = text
		}
		if list, _ := view.Members(c); len(list) == 0 {
			gone[view.CommunityName(c)] = true
		}
		if n := view.Mismatches(c); n > 0 {
			name := view.CommunityName(c)
			if misses[name] = n; d.misses[name] == 0 {
				log.Warn("a rule met a value of another type than it compares with", "community",
					name)
			}
		}
	}
	if !maps.Equal(texts, d.texts) {
		page.Define(texts)
	}
	if !maps.Equal(gone, d.gone) {
		page.Gone(gone)
	}
	*d = definitions{texts, misses, gone, now.Add(definitionsEvery)}
}

// inWords describes the rule of a community, and the present radius of an ego network.
func inWords(view graphstore.View, c graphstore.Community) string {
	rule := view.Rule(c)
	text := rule.String()
	list, _ := view.Members(c)
	switch {
	case rule.Kind != graphstore.Ego:
	case len(list) == 0:
		text += ", which is not a vertex at present"
	case view.CutShort(c):
		text += fmt.Sprintf("; at present within %d hops, because more would exceed "+
			"members_max", view.Hops(c))
	}
	return text
}
