package event

import "strings"

// subjectPrefix is what the subjects of the stream start with.
const subjectPrefix = "gql."

// Subject returns the subject that carries events of a kind, "gql.edge" say.
// It panics if there is no such kind.
func Subject(k Kind) string { return subjectPrefix + kindNames[k] }

// SubjectKind returns the kind of event that a subject carries; ok is false when
// the subject is not one of the stream's.
func SubjectKind(subject string) (kind Kind, ok bool) {
	name, ok := strings.CutPrefix(subject, subjectPrefix)
	if !ok {
		return 0, false
	}
	return ParseKind(name)
}
