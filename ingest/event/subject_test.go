package event

import "testing"

// Subjects and kinds are two names of one thing.
func TestSubjects(t *testing.T) {
	for kind := range Kind(Kinds) {
		if got, ok := SubjectKind(Subject(kind)); !ok || got != kind {
			t.Errorf("%v: %s reads as %v", kind, Subject(kind), got)
		}
	}
	for _, subject := range []string{"", "gql.", "gql.edges", "edge", "gqlq.edge", "gql.edge.x", "GQL.edge"} {
		if kind, ok := SubjectKind(subject); ok {
			t.Errorf("%q is %v", subject, kind)
		}
	}
}
