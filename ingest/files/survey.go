package files

import (
	"math"
	"math/bits"
	"strconv"
	"strings"

	"github.com/cespare/xxhash/v2"

	"gqlstream/ingest/event"
	"gqlstream/ingest/wire"
)

const (
	// sampleMax bounds the elements of one kind in a survey that has them all. Beyond it, the
	// sample is halved until sampleLarge are left, and again whenever there are more: it keeps the
	// elements with hashes that begin with one more zero bit, and counts are scaled. The smaller
	// sample stays in the processor's cache; a count has an error of about half a percent.
	sampleMax   = 1 << 18
	sampleLarge = 1 << 15
)

// rowSummary summarises the rows about one element.
type rowSummary struct {
	last  uint64 // hash of the last row's content
	class event.Class
	again uint32 // rows that repeated the row before
	other uint32 // rows that contradicted it
}

// sample holds elements by the hash of their names.
type sample struct {
	shift uint
	of    map[uint64]rowSummary
}

func newSample() sample { return sample{of: map[uint64]rowSummary{}} }

// scale returns how many elements each one in the sample represents.
func (s *sample) scale() int { return 1 << s.shift }

func (s *sample) keeps(key uint64) bool { return bits.LeadingZeros64(key) >= int(s.shift) }

// say records a row about an element.
func (s *sample) say(key, what uint64, class event.Class) {
	if !s.keeps(key) {
		return
	}
	x, known := s.of[key]
	switch {
	case !known:
	case x.last == what:
		x.again++
	default:
		x.other++
	}
	x.last, x.class = what, class
	most := sampleMax
	if s.shift > 0 {
		most = sampleLarge
	}
	if s.of[key] = x; len(s.of) > most {
		s.shrink()
	}
}

// shrink halves the sample until sampleLarge elements are left at most.
func (s *sample) shrink() {
	n := len(s.of)
	for ; n > sampleLarge; s.shift++ {
		n = 0
		for key := range s.of {
			if bits.LeadingZeros64(key) > int(s.shift) {
				n++
			}
		}
	}
	kept := make(map[uint64]rowSummary, n)
	for key, x := range s.of {
		if s.keeps(key) {
			kept[key] = x
		}
	}
	s.of = kept
}

// addProperties adds properties to an element.
func (s *sample) addProperties(key, what uint64) {
	if !s.keeps(key) {
		return
	}
	if x := s.of[key]; x.last&what != what {
		s.say(key, x.last|what, 0)
	}
}

// totals returns the number of elements, and of rows that repeated or contradicted an earlier row
// about the same element.
func (s *sample) totals() (things, again, other int) {
	for _, x := range s.of {
		again += int(x.again)
		other += int(x.other)
	}
	return len(s.of) * s.scale(), again * s.scale(), other * s.scale()
}

// Properties of a vertex in a survey.
const (
	hasEdge uint64 = 1 << iota
	hasLabel
	hasPrediction
	isMember
	hasRow
	isAuthor
	isExcepted
)

// survey collects statistics of files for a summary, in bounded memory. They are exact up to a
// quarter of a million elements of each kind.
type survey struct {
	vertices sample // last holds the properties of the vertex
	edges    sample
	labels   sample
	predicts sample
	members  sample

	posts, answers, reposts int
	postIDs                 sample
	postNames               int // answers and reposts that name an earlier post

	communities map[string]bool
	digits      idDigits
	dates       dates
	hubs        hubs
	folds       sample         // vertices by the folded form of their ids, unless they have it
	attributes  sample         // of vertices, by vertex and name
	doubtful    map[string]int // rows of edges and posts with ids that may stand for nobody
	excepted    excepted
}

func newSurvey(except Exception) *survey {
	return &survey{
		excepted: excepted{
			rule: except, values: map[uint64][]event.Value{}, posts: map[uint64]int{},
		},
		vertices: newSample(), edges: newSample(), labels: newSample(), predicts: newSample(),
		members: newSample(), postIDs: newSample(), communities: map[string]bool{},
		doubtful: map[string]int{}, folds: newSample(), attributes: newSample(),
		hubs: hubs{counts: map[uint64]hub{}},
	}
}

// mix returns a hash of two numbers.
func mix(a, b uint64) uint64 {
	high, low := bits.Mul64(a^0x9e3779b97f4a7c15, b^0xd1b54a32d192ed03)
	x := high ^ low
	x ^= x >> 32
	x *= 0xd6e8feb86659fd93
	return x ^ x>>32
}

func floatBits(x float64) uint64 { return math.Float64bits(x) }

func keyOf(id event.ID) uint64 {
	if id.Name != "" {
		return xxhash.Sum64String(id.Name)
	}
	return mix(id.Number, 1)
}

// addLast adds the last event of a kind in a batch.
func (s *survey) addLast(b *event.Batch, kind event.Kind) {
	switch at := b.Count(kind) - 1; kind {
	case event.KindEdge:
		s.noteEdge(&b.Edges[at])
	case event.KindLabel:
		e := &b.Labels[at]
		key := keyOf(e.Vertex)
		s.addProperties(e.Vertex, key, hasLabel)
		s.labels.say(key, uint64(e.Class+2), e.Class)
	case event.KindPrediction:
		e := &b.Predictions[at]
		key, what := keyOf(e.Vertex), xxhash.Sum64String(e.Version)
		for _, units := range e.Units {
			what = mix(what, uint64(units))
		}
		s.addProperties(e.Vertex, key, hasPrediction)
		s.predicts.say(key, what, 0)
	case event.KindPost:
		s.notePost(&b.Posts[at])
	case event.KindMember:
		e := &b.Members[at]
		key := keyOf(e.Vertex)
		s.addProperties(e.Vertex, key, isMember)
		s.members.say(mix(key, xxhash.Sum64String(e.Community)), uint64(e.Multiplicity), 0)
		if len(s.communities) < sampleMax && !s.communities[e.Community] {
			s.communities[string([]byte(e.Community))] = true
		}
	case event.KindVertex:
		e := &b.Vertices[at]
		key := keyOf(e.Vertex)
		s.addProperties(e.Vertex, key, hasRow)
		for _, a := range e.Attributes {
			s.attributes.say(mix(key, xxhash.Sum64String(a.Key)), hashOf(a.Value), 0)
		}
		s.noteAttributes(key, e)
	}
}

// addProperties adds properties to a vertex.
func (s *survey) addProperties(id event.ID, key, what uint64) {
	s.vertices.addProperties(key, what)
	s.fold(id, key, what)
}

// see notes the form of an id.
func (s *survey) see(id event.ID) {
	s.digits.see(id)
	s.dates.see(id.Name)
	if wire.IsDoubtful(id.Name) {
		s.doubtful[strings.Clone(id.Name)]++
	}
}

func (s *survey) noteEdge(e *event.Edge) {
	a, b := keyOf(e.Src), keyOf(e.Dst)
	s.see(e.Src)
	s.see(e.Dst)
	if !e.Remove {
		s.addProperties(e.Src, a, hasEdge)
		s.addProperties(e.Dst, b, hasEdge)
		s.hubs.see(e.Src, e.Dst, a, b)
	}
	s.edges.say(mix(min(a, b), max(a, b)), floatBits(e.Weight), 0)
}

func (s *survey) notePost(e *event.Post) {
	author := keyOf(e.Author)
	s.posts++
	s.see(e.Author)
	s.addProperties(e.Author, author, hasPrediction|isAuthor)
	s.excepted.notePostOf(author, &s.vertices)
	for i, other := range []event.Reference{e.ReplyTo, e.RepostOf} {
		if !other.Given {
			continue
		}
		if i == 0 {
			s.answers++
		} else {
			s.reposts++
		}
		key := keyOf(other.ID)
		if _, is := s.postIDs.of[key]; is {
			s.postNames += s.postIDs.scale()
		}
		s.addProperties(e.Author, author, hasEdge)
		s.addProperties(other.ID, key, hasEdge)
		s.hubs.see(e.Author, other.ID, author, key)
		s.edges.say(mix(min(author, key), max(author, key)), floatBits(e.Weight), 0)
	}
	if e.ID != "" {
		s.postIDs.say(keyOf(event.ParseID(e.ID)), 0, 0)
	}
}

// authors returns the number of authors of posts.
func (s *survey) authors() int {
	all, _ := s.meets(isAuthor, isAuthor)
	return all
}

// meets returns how many vertices have a property, and how many of these have the other one too.
// Labels and predictions that are not read do not count.
func (s *survey) meets(has, also uint64) (all, both int) {
	for _, x := range s.vertices.of {
		if x.last&has != 0 && !isUnread(x.last, has) {
			all++
			if x.last&also != 0 && !isUnread(x.last, also) {
				both++
			}
		}
	}
	return all * s.vertices.scale(), both * s.vertices.scale()
}

// byClass returns the number of labelled vertices of each of k classes.
func (s *survey) byClass(k int) []int {
	count := make([]int, k)
	scale := s.labels.scale()
	if s.excepted.on() {
		scale = max(scale, s.vertices.scale())
	}
	for key, x := range s.labels.of {
		if s.excepted.on() && (!s.vertices.keeps(key) || s.vertices.of[key].last&isExcepted != 0) {
			continue
		}
		if x.class >= 0 && int(x.class) < k {
			count[x.class] += scale
		}
	}
	return count
}

// idDigits counts ids beyond the range that a float64 holds exactly, and how many of them look as
// if they had been stored in one.
type idDigits struct{ large, binary, decimal int }

// roundedMin is the least number of large ids that cannot all look rounded by chance.
const roundedMin = 8

func (d *idDigits) see(id event.ID) {
	if id.Name != "" || id.Number <= event.ExactMax {
		return
	}
	if d.large++; d.binary < d.large-1 && d.decimal < d.large-1 {
		return // this id has all its digits
	}
	text := strconv.FormatUint(id.Number, 10)
	low := bits.TrailingZeros64(id.Number) >= bits.Len64(id.Number)-53
	if low || strconv.FormatFloat(float64(id.Number), 'f', -1, 64) == text {
		d.binary++
	}
	unit := uint64(1)
	for n := id.Number; n >= 1e15; n /= 10 {
		unit *= 10
	}
	if id.Number%unit == 0 {
		d.decimal++
	}
}

// rounded reports whether the ids have lost digits.
func (d *idDigits) rounded() bool {
	return d.large >= roundedMin && (d.binary == d.large || d.decimal == d.large)
}
