package pipeline

import (
	"fmt"
	"log/slog"
	"maps"
	"time"

	"gqlstream/graphstore"
	"gqlstream/sinks/web"
)

// definitionsEvery bounds how often the communities of which the definition can change are looked at,
// where there are more than definitionsFew: a log may be quiet for long after a step.
const (
	definitionsEvery = time.Second
	definitionsFew   = 64
)

type definitions struct {
	seen   int                    // communities that were looked at
	live   []graphstore.Community // of which the text can change, or a rule meet what it cannot compare
	texts  map[string]string      // by name
	misses map[string]uint64      // how often each rule met values that it cannot compare, by community
	due    time.Time
}

// show tells the page who is a member of the communities by rule, when that has
// changed, and warns once of each rule that met values of another type. It looks at new
// communities, and now and then at those with a rule, never at those that members name.
func (d *definitions) show(view graphstore.View, page *web.Server, log *slog.Logger) {
	if d.texts == nil {
		d.texts, d.misses = map[string]string{}, map[string]uint64{}
	}
	changed := false
	for ; d.seen < view.Communities(); d.seen++ {
		if c := graphstore.Community(d.seen); inWords(view, c) != "" {
			d.live = append(d.live, c)
			changed = d.look(view, c, log) || changed
		}
	}
	if now := time.Now(); !now.Before(d.due) || len(d.live) <= definitionsFew {
		d.due = now.Add(definitionsEvery)
		for _, c := range d.live {
			changed = d.look(view, c, log) || changed
		}
	}
	if changed {
		maps.DeleteFunc(d.texts, func(_, text string) bool { return text == "" })
		page.Define(maps.Clone(d.texts))
	}
}

// look reports whether the definition of a community by rule has changed.
func (d *definitions) look(view graphstore.View, c graphstore.Community, log *slog.Logger) (changed bool) {
	name, text := view.CommunityName(c), ""
	if !view.Retired(c) {
		text = inWords(view, c)
	}
	changed = text != d.texts[name]
	d.texts[name] = text
	if n := view.Mismatches(c); n > 0 && n != d.misses[name] {
		if d.misses[name] == 0 {
			log.Warn("a rule met a value of another type than it compares with", "community", name)
		}
		d.misses = maps.Clone(d.misses) // who shows the status reads the one before
		d.misses[name] = n
	}
	return changed
}

// inWords describes in words who is a member of a community now.
func inWords(view graphstore.View, c graphstore.Community) string {
	rule := view.Rule(c)
	text := rule.String()
	list, _ := view.Members(c)
	switch {
	case rule.Kind != graphstore.Ego:
	case len(list) == 0:
		text += ", which is no vertex now"
	case view.CutShort(c):
		text += fmt.Sprintf("; within %d now, for more would be too many", view.Hops(c))
	}
	return text
}
