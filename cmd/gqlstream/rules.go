package main

import (
	"fmt"
	"io"

	"gqlstream/graphstore"
)

// warnOfRules says where communities are not what their definitions may be thought
// to say: values that a rule cannot compare, and ego networks cut short or without
// a root.
func warnOfRules(w io.Writer, view graphstore.View) {
	for c := range graphstore.Community(view.Communities()) {
		rule := view.Rule(c)
		list, _ := view.Members(c)
		if n := view.Mismatches(c); n > 0 {
			fmt.Fprintf(w, "warning: community %q: %d times the rule met a value of another type than it compares with\n", rule.Name, n)
		}
		switch {
		case rule.Kind == graphstore.Ego && len(list) == 0:
			fmt.Fprintf(w, "warning: community %q: there is no vertex %s\n", rule.Name, rule.Root)
		case rule.Kind == graphstore.Ego && view.Hops(c) < rule.Hops:
			fmt.Fprintf(w, "warning: community %q reaches %d hops of %d: more would be more members than members_max\n",
				rule.Name, view.Hops(c), rule.Hops)
		case rule.Kind == graphstore.ByExpression && len(list) == 0:
			fmt.Fprintf(w, "warning: community %q: the rule holds for no vertex\n", rule.Name)
		}
	}
}
