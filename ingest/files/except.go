package files

import (
	"fmt"
	"slices"
	"strings"

	"gqlstream/ingest/event"
)

// Exception finds the excepted vertices: their labels, predictions and posts are not read. It
// decides by the values of some of their attributes. The rows of such vertices are delivered all
// the same; the summary counts them. The zero Exception finds none.
type Exception struct {
	Keys  []string // of the attributes
	Holds func(values []event.Value) bool
}

// excepted collects the attributes that an exception needs, for the vertices of the survey's
// sample.
type excepted struct {
	rule   Exception
	values map[uint64][]event.Value // of the attributes of a vertex
	posts  map[uint64]int           // by author
}

func (x *excepted) on() bool { return x.rule.Holds != nil }

// noteAttributes updates the values of a vertex, and whether it is excepted.
func (s *survey) noteAttributes(key uint64, e *event.Vertex) {
	x := &s.excepted
	if !x.on() || !s.vertices.keeps(key) {
		return
	}
	values := x.values[key]
	if values == nil || e.Erase {
		values = make([]event.Value, len(x.rule.Keys))
	}
	for _, a := range e.Attributes {
		if i := slices.Index(x.rule.Keys, a.Key); i >= 0 {
			a.Value.Text = strings.Clone(a.Value.Text)
			values[i] = a.Value
		}
	}
	x.values[key] = values
	was := s.vertices.of[key]
	if was.last &^= isExcepted; x.rule.Holds(values) {
		was.last |= isExcepted
	}
	s.vertices.of[key] = was
}

// notePostOf counts a post of an author.
func (x *excepted) notePostOf(author uint64, vertices *sample) {
	if x.on() && vertices.keeps(author) {
		x.posts[author]++
	}
}

// unread returns how many vertices with a property are excepted; of authors, their posts.
func (s *survey) unread(has uint64) (n int) {
	if !s.excepted.on() {
		return 0
	}
	for key, v := range s.vertices.of {
		switch {
		case v.last&has == 0 || v.last&isExcepted == 0:
		case has == isAuthor:
			n += s.excepted.posts[key]
		default:
			n++
		}
	}
	return n * s.vertices.scale()
}

// isUnread reports whether a property of a vertex is evidence that is not read.
func isUnread(properties, has uint64) bool {
	return properties&isExcepted != 0 && (has == hasLabel || has == hasPrediction)
}

// unreadText says how many rows with a property are not read, or "".
func (s *survey) unreadText(has uint64) string {
	if n := s.unread(has); n > 0 {
		return s.vertices.count(n) + " not read: evidence.except"
	}
	return ""
}

// exceptionWarning warns of a rule that holds for no vertex.
func (s *survey) exceptionWarning() (all []string) {
	x := &s.excepted
	if n, _ := s.meets(isExcepted, isExcepted); !x.on() || n > 0 {
		return nil
	}
	text := "evidence.except holds for no vertex"
	for i, key := range x.rule.Keys {
		found := false
		for _, values := range x.values {
			found = found || values[i] != event.Value{}
		}
		if !found {
			return append(all, fmt.Sprintf("%s: none has the attribute %q", text, key))
		}
	}
	return append(all, text)
}
