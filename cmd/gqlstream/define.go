package main

import (
	"fmt"

	"gqlstream/graphstore"
)

// definitions is what the page was told of the communities by rule.
type definitions struct {
	told   uint64                        // a digest of what can change of them; 0: nothing yet
	warned map[graphstore.Community]bool // of values that a rule cannot compare
	misses map[string]uint64             // how often each rule met such values, by community
}

// define tells the page who is a member of the communities by rule, when that has
// changed, and warns once of each rule that met values of another type.
func (p *pipeline) define() {
	view := p.core.View()
	digest := uint64(1)
	for c := range graphstore.Community(view.Communities()) {
		digest = digest*31 + uint64(view.Hops(c)) + 7*min(view.MemberSum(c), 1)
		if view.Retired(c) {
			digest++
		}
		if n := view.Mismatches(c); n > 0 {
			p.mismatched(c, view.CommunityName(c), n)
		}
	}
	if p.page == nil || digest == p.definitions.told {
		return
	}
	p.definitions.told = digest
	said := map[string]string{}
	for c := range graphstore.Community(view.Communities()) {
		if text := inWords(view, c); text != "" && !view.Retired(c) {
			said[view.CommunityName(c)] = text
		}
	}
	p.page.Define(said)
}

// mismatched notes that a rule met values that it cannot compare, n times so far.
func (p *pipeline) mismatched(c graphstore.Community, name string, n uint64) {
	d := &p.definitions
	if d.warned == nil {
		d.warned, d.misses = map[graphstore.Community]bool{}, map[string]uint64{}
	}
	d.misses[name] = n
	if !d.warned[c] {
		d.warned[c] = true
		p.log.Warn("a rule met a value of another type than it compares with", "community", name)
	}
}

// inWords says who is a member of a community now.
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
