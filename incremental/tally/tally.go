package tally

import (
	"slices"

	"gqlstream/graphstore"
	"gqlstream/incremental/diffusion"
	"gqlstream/incremental/neighborhood"
	"gqlstream/ingest/event"
)

// Vertex and CommunityID are the store's dense indices.
type (
	Vertex      = graphstore.Vertex
	CommunityID = graphstore.Community
)

// movement says whether a community was changed since it was estimated.
type movement uint8

const (
	still movement = iota
	moved
	passed // moved, but by too little to be estimated, as far as its room says
)

// Tallies holds the statistics of all communities. One goroutine owns it; statistics may be read
// side by side between two Updates.
type Tallies struct {
	classes int
	keep    Families
	rows    []Vertex                // calibration rows: labels of role calibrate that have a prediction, sorted
	counts  func() [families]masses // of the rows: A1 and A2 at masses of one, which are N and G2
	decay   decay
	each    []*community
	moved   []movement // by community: whether a statistic of its own may have changed since it was estimated
	all     bool       // likewise a statistic that all communities share
	rooms   []Room     // by community
	some    bool       // likewise, by little
	shared  float64    // how far a mean that all communities read moved since the last emission
	renewed []float64  // K: labels of each class that came or went since the last emission

	resourced []CommunityID // communities whose sources this step changed
	changed   []rowChange   // calibration rows that the last Update changed
	touched   []Vertex      // scratch: vertices with a changed profile, label or membership
	shifts    []shift       // scratch: membership changes by vertex
	merged    []Vertex      // scratch of mergeRows
	phi       []float64     // scratch: cells of one
}

// community is the part of the statistics that belongs to one community.
type community struct {
	members, labelled, profiled uint64
	known                       uint64       // different members with a label or a prediction
	knownSquares                Sum          // of their multiplicities, times squareScale
	squares                     Sum          // of the profiled members' multiplicities, times squareScale
	anchored                    []uint64     // K
	versions                    []uint64     // profiled multiplicity by model version
	p                           [whole][]Sum // Z
	ownSquare                   []Sum        // K: sum of m own²; nil where means are all
	sources                     []diffusion.SourceChange
	progress                    Progress
	spread                      *Spread // nil before the first sketch, and without a dual
	audited                     uint64  // members with an audit label, each once
	audit                       []Sum   // over them, see countAudit; nil before the first
}

// New returns the tallies of a graph as it stands, counted from nothing: the start of a warm core, and the
// twin that tests hold Update against. Every community's Sources then lists its whole kernel.
func New(classes int, keep Families, view graphstore.View, sums *neighborhood.Sums) *Tallies {
	t := &Tallies{classes: classes, keep: keep, renewed: make([]float64, classes)}
	t.phi = make([]float64, classes*classes)
	t.Begin(view)
	for v := range Vertex(view.Vertices()) {
		if s := stateOf(view, sums, v); s.calibrates() {
			t.rows = append(t.rows, v)
		}
	}
	t.moveLandmark(view)
	t.countRows(view, sums)
	for id := range t.each {
		t.rebuildMembers(CommunityID(id), view, sums)
	}
	return t
}

func (t *Tallies) newCommunity() *community {
	k := t.classes
	c := &community{anchored: make([]uint64, k)}
	if !t.keep.Means {
		c.ownSquare = make([]Sum, k)
	}
	for kind := range whole {
		if t.keep.has(kind) {
			c.p[kind] = make([]Sum, kind.cells(k))
		}
	}
	return c
}

// Sources returns the changes of the community's kernel sources since Begin: unlabelled
// members that joined and left, by signed multiplicity, sorted by vertex within each Update.
func (t *Tallies) Sources(c CommunityID) []diffusion.SourceChange { return t.each[c].sources }

// Progress returns the changes of the community since SetProgress.
func (t *Tallies) Progress(c CommunityID) Progress {
	p := t.each[c].progress
	p.Moved = t.all || t.moved[c] != still
	return p
}

// SetProgress overwrites the progress: with the zero Progress once the community was estimated.
func (t *Tallies) SetProgress(c CommunityID, p Progress) {
	t.spreadMoved()
	t.each[c].progress, t.moved[c], t.rooms[c] = p, still, Room{}
	if p.Moved {
		t.moved[c] = moved
	}
}

// Room says how much may happen to a community before it is asked again whether its shares have moved by enough: Left in
// all, of which every unit takes so much by which the posterior of a member moves, a value of the dual at a member, the mean
// residual of all labels, or the labels of a class as a part of them. The zero Room has none: whatever happens, it is asked.
type Room struct{ Left, Posterior, Value, Shared, Labels float64 }

// take notes a movement that takes so much of the room of a community.
func (t *Tallies) take(c CommunityID, part float64) {
	if t.moved[c] == moved {
		return
	}
	if t.rooms[c].Left -= part; t.rooms[c].Left > 0 {
		t.moved[c] = passed
	} else {
		t.moved[c] = moved
	}
}

// SetRoom gives a community that was just asked or estimated room.
func (t *Tallies) SetRoom(c CommunityID, r Room) { t.rooms[c] = r }

// MoveAll marks every community as moved, whatever its statistics do. It costs the same however
// many communities there are.
func (t *Tallies) MoveAll() { t.all = true }

// MoveShared notes that a mean that all communities read moved by this much.
func (t *Tallies) MoveShared(by float64) { t.some, t.shared = true, t.shared+by }

// Move marks one community as moved.
func (t *Tallies) Move(c CommunityID) { t.moved[c] = moved }

// MovePosterior notes that the posterior of v moved by this much, 1 where there was none or is none any more. A member that
// stays has turned by the square of it, whatever its own prediction did: posteriors read neighbours and labels, too.
func (t *Tallies) MovePosterior(view graphstore.View, v Vertex, by float64) {
	stays := by < 1 && view.Label(v).Class == event.NoClass // who comes or goes is counted with the members
	for _, member := range view.MemberOf(v) {
		c, m := member.Community, float64(member.Multiplicity)
		t.take(c, by*m*t.rooms[c].Posterior)
		if stays {
			t.each[c].progress.turn(m*m, m*m, by*by)
		}
	}
}

// Pass notes that a community that Moved lists has moved by too little, as far as it is known now.
func (t *Tallies) Pass(c CommunityID) { t.moved[c] = passed }

// Passed reports whether too little has happened to a community since it was asked or estimated, also with what takes this
// part of its room and was not noted.
func (t *Tallies) Passed(c CommunityID, part float64) bool {
	return t.moved[c] == passed && (part == 0 || t.rooms[c].Left > part)
}

// ForgetPassed makes of those that passed, and of what moved for all, what a state holds of them: communities that moved.
// Rooms are no part of it.
func (t *Tallies) ForgetPassed() {
	clear(t.rooms)
	t.spreadMoved()
	clear(t.renewed)
	for id, m := range t.moved {
		if m == passed {
			t.moved[id] = moved
		}
	}
}

// Moved appends the communities with a statistic that may have changed since SetProgress,
// in order. It reads some bytes a community, so it is for emissions, not for steps.
func (t *Tallies) Moved(dst []CommunityID) []CommunityID {
	t.spreadMoved()
	for id, m := range t.moved {
		if m != still {
			dst = append(dst, CommunityID(id))
		}
	}
	return dst
}

// spreadMoved has every community know of what moved for all of them.
func (t *Tallies) spreadMoved() {
	if !t.all && !t.some {
		return
	}
	labels := 0.0 // a part of those of a class
	for class, renewed := range t.renewed {
		n, _ := t.labelsOf(class)
		labels = max(labels, renewed/max(n, 1))
	}
	for id := range t.moved {
		if t.all {
			t.moved[id] = moved
		} else {
			t.take(CommunityID(id), t.shared*t.rooms[id].Shared+labels*t.rooms[id].Labels)
		}
	}
	t.all, t.some, t.shared = false, false, 0
	clear(t.renewed)
}

// Rows lists the calibration labels with a prediction, in order. It is read-only.
func (t *Tallies) Rows() []Vertex { return t.rows }

// state is the input of the tallies about one vertex at one time.
type state struct {
	label   graphstore.Label
	audit   graphstore.Audit
	profile profile
	version uint32
	time    event.Time // of the label, where the store keeps it
}

func (s *state) labelled() bool { return s.label.Class != event.NoClass }

func (s *state) audited() bool { return s.audit.Class != event.NoClass }

// known reports whether an estimate can say something of the vertex: it has a label or a prediction.
func (s *state) known() bool { return s.labelled() || s.profile.own != nil }

// alike reports whether a member counts the same in both states, whatever is predicted of one that is not audited.
func (s *state) alike(o *state) bool {
	return s.label == o.label && (s.profile.own == nil) == (o.profile.own == nil) && s.version == o.version &&
		s.audit == o.audit && (!s.audited() || slices.Equal(s.profile.own, o.profile.own))
}

// calibrates reports whether the vertex is a calibration row.
func (s *state) calibrates() bool {
	return s.labelled() && s.label.Role == event.Calibrate && s.profile.own != nil
}

func stateOf(view graphstore.View, sums *neighborhood.Sums, v Vertex) state {
	return state{
		label:   view.Label(v),
		audit:   view.Audit(v),
		profile: profile{own: view.Prediction(v), votes: sums.Votes(v)},
		version: view.Version(v),
		time:    view.LabelTime(v),
	}
}

// count adds (sign 1) or takes back (sign -1) a member of the given state.
func (t *Tallies) count(c *community, s *state, multiplicity uint32, sign int) {
	if multiplicity == 0 {
		return
	}
	m := uint64(sign) * uint64(multiplicity) // two's complement: -1 subtracts
	c.members += m
	if s.known() {
		c.known += uint64(sign)
		c.knownSquares.Add(float64(multiplicity)*float64(multiplicity)*squareScale, sign)
	}
	if s.audited() {
		c.countAudit(s, float64(multiplicity), sign)
	}
	switch {
	case s.labelled():
		c.labelled += m
		c.anchored[s.label.Class] += m
	case s.profile.own != nil:
		c.profiled += m
		c.squares.Add(float64(multiplicity)*float64(multiplicity)*squareScale, sign)
		for int(s.version) >= len(c.versions) {
			c.versions = append(c.versions, 0)
		}
		c.versions[s.version] += m
		for kind := range whole {
			if t.keep.has(kind) {
				accumulate(c.p[kind], s.profile.phi(t.phi, kind), float64(multiplicity), sign)
			}
		}
		if !t.keep.Means {
			t.countSquare(c, s.profile.own, float64(multiplicity), sign)
		}
	}
}

// squareScale brings the square of the largest multiplicity to 2^32; that of one is still exact.
const squareScale = 0x1p-32

// squared returns the sum of the squared multiplicities of the profiled members.
func (c *community) squared() float64 { return c.squares.Float() / squareScale }

func (t *Tallies) countSquare(c *community, own []uint32, multiplicity float64, sign int) {
	p := t.phi[:t.classes]
	ownMean(p, own)
	for j, x := range p {
		c.ownSquare[j].Add(multiplicity*x*x, sign)
	}
}

// accumulate adds scale*phi to the sums, or takes it back.
func accumulate(sums []Sum, phi []float64, scale float64, sign int) {
	for z, x := range phi {
		sums[z].Add(scale*x, sign)
	}
}
