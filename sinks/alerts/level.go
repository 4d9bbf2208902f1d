package alerts

// Level is the share where a rule begins to fire, for a chart. Rules on changes have none.
type Level struct {
	Quantity Quantity `json:"quantity"`
	Above    bool     `json:"above"`
	Value    float64  `json:"value"`

	communities, classes Patterns
}

// level returns the level of a rule, nil if it watches no share.
func (r *Rule) level() *Level {
	switch r.When.Quantity {
	case Low, High, Point:
	default:
		return nil
	}
	if r.When.Of != "" { // a difference of two communities
		return nil
	}
	return &Level{
		r.When.Quantity, r.When.Above, r.When.Value, r.Communities, r.Classes,
	}
}

// Watches reports whether the rule watches a class of a community.
func (l *Level) Watches(community, class string) bool {
	return l.communities.Match(community) && l.classes.Match(class)
}
