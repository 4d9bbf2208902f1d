package tally

import (
	"slices"

	"gqlstream/graphstore"
	"gqlstream/incremental/diffusion"
	"gqlstream/incremental/neighborhood"
	"gqlstream/incremental/pairs"
	"gqlstream/ingest/event"
)

// Vertex and CommunityID are the store's dense indices.
type (
	Vertex      = graphstore.Vertex
	CommunityID = graphstore.Community
)

// status is the need of a community to be solved again.
type status uint8

const (
	unchanged   status = iota // since its last record
	unpublished               // solved since, and its shares had moved by too little for a record
	touched                   // a statistic of it may have changed since it was solved
)

// Tallies holds the statistics of all communities. One goroutine owns it; statistics may be read
// side by side between two Updates.
type Tallies struct {
	classes int
	keep    Families
	pairs   *pairs.Pairs
	// calibration rows: labels of role calibrate that have a prediction, sorted
	rows   []Vertex
	counts func() [families]masses // of the rows: A1 and A2 at masses of one, which are N and G2
	decay  decay
	each   []*community
	status []status // by community
	all    bool     // a statistic that all communities share may have changed: all are touched

	resourced []CommunityID // communities with sources that this step changed
	changed   []rowChange   // calibration rows that the last Update changed
	vertices  []Vertex      // scratch: vertices with a changed profile, label or membership
	shifts    []shift       // scratch: membership changes by vertex
	merged    []Vertex      // scratch of mergeRows
	phi       []float64     // scratch: cells of one
}

// community is the part of the statistics that belongs to one community.
type community struct {
	members, labelled, profiled uint64 // the last one in units of 1/pairs.Whole
	known                       uint64 // different members with a label or a prediction
	knownSquares                Sum    // of their multiplicities, times squareScale
	// of the profiled members' multiplicities, times squareScale
	squares      Sum
	anchored     []uint64     // K, in units of 1/pairs.Whole
	versions     []uint64     // profiled multiplicity by model version
	p            [whole][]Sum // Z
	ownSquare    []Sum        // K: sum of m own²; nil where means are all
	sources      []diffusion.SourceChange
	progress     Progress
	dropped      map[Vertex]struct{} // see Dropped
	spread       *Spread             // nil before the first sketch, and without a dual
	observations observations        // when the members were last observed
	audited      uint64              // members with an audit label, each once
	audit        []Sum               // over them, see countAudit; nil before the first
}

// New returns the tallies of a graph, counted completely: the start of a warm core, and the twin
// that tests hold Update against. Every community's Sources then lists its whole kernel.
func New(
	classes int, keep Families, view graphstore.View, sums *neighborhood.Sums, pairs *pairs.Pairs,
) *Tallies {
	t := &Tallies{classes: classes, keep: keep, pairs: pairs}
	t.phi = make([]float64, classes*classes)
	t.Begin(view)
	for v := range Vertex(view.Vertices()) {
		if pairs.Calibrates(v) != event.NoClass {
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
	p.Moved = t.all || t.status[c] != unchanged
	return p
}

// SetProgress overwrites the progress: with the zero Progress once a record of the community was
// published.
func (t *Tallies) SetProgress(c CommunityID, p Progress) {
	t.touchEach()
	t.each[c].progress, t.status[c] = p, unchanged
	if p.Moved {
		t.status[c] = touched
	}
}

// TouchAll notes that a statistic of every community may have changed. It costs the same however
// many communities there are.
func (t *Tallies) TouchAll() { t.all = true }

// Touch notes that a statistic of a community may have changed.
func (t *Tallies) Touch(c CommunityID) { t.status[c] = touched }

// TouchPosterior marks the communities of v as changed, because its posterior moved by this much; 1
// if v had no cell before or has none now. A member that stays counts as replaced by as much,
// independent of its own prediction. One new prediction moves the cells of neighbours in the same
// direction as its own, so the variance of their sum is larger than that of independent members.
func (t *Tallies) TouchPosterior(view graphstore.View, v Vertex, by float64) {
	if by == 0 {
		return
	}
	// joins and leaves count with the members
	stays := by < 1 && view.Label(v).Class == event.NoClass
	for _, member := range view.MemberOf(v) {
		c, m := member.Community, float64(member.Multiplicity)
		t.status[c] = touched
		if stays {
			t.each[c].progress.turn(m*m, m*m, by)
		}
	}
}

// TouchTogether notes that one prediction moved members of a community together, as if this number
// of them had been replaced at once.
func (t *Tallies) TouchTogether(c CommunityID, members float64) {
	t.each[c].progress.turn(members*members, members*members, 1)
}

// SetUnpublished notes that a community was solved, and that its last record remains.
func (t *Tallies) SetUnpublished(c CommunityID) {
	t.touchEach()
	t.status[c] = unpublished
}

// TouchUnpublished touches the communities that were solved and not published: a state does not
// tell them apart.
func (t *Tallies) TouchUnpublished() {
	t.touchEach()
	for id, s := range t.status {
		if s == unpublished {
			t.status[id] = touched
		}
	}
}

// Changed calls visit for the communities that have changed since their last record, in order, and
// reports whether they were touched since they were solved. It reads a byte a community, so it is
// for emissions, not for steps.
func (t *Tallies) Changed(visit func(c CommunityID, isTouched bool)) {
	t.touchEach()
	for id, s := range t.status {
		if s != unchanged {
			visit(CommunityID(id), s == touched)
		}
	}
}

// touchEach touches every community if TouchAll was called.
func (t *Tallies) touchEach() {
	if t.all {
		for id := range t.status {
			t.status[id] = touched
		}
	}
	t.all = false
}

// Rows lists the calibration labels that have a pair, in order. It is read-only.
func (t *Tallies) Rows() []Vertex { return t.rows }

// state is the input of the tallies about one vertex at one time.
type state struct {
	label    graphstore.Label
	audit    graphstore.Audit
	profile  profile
	version  uint32
	dropped  bool       // the model version in use predicts nothing of it yet
	time     event.Time // of the label
	fresh    uint32     // of the label, in units of 1/pairs.Whole
	observed event.Time // log time of the newest observation behind the prediction; 0: not known
}

func (s *state) labelled() bool { return s.label.Class != event.NoClass }

func (s *state) audited() bool { return s.audit.Class != event.NoClass }

// known reports whether an estimate has information on the vertex: it has a label or a prediction.
func (s *state) known() bool { return s.labelled() || s.profile.own != nil }

// alike reports whether a member counts the same in both states; the prediction matters for audited
// members only.
func (s *state) alike(o *state) bool {
	return s.label == o.label && s.fresh == o.fresh &&
		(s.profile.own == nil) == (o.profile.own == nil) &&
		s.version == o.version && s.audit == o.audit &&
		(!s.audited() || slices.Equal(s.profile.own, o.profile.own))
}

func (t *Tallies) stateOf(view graphstore.View, sums *neighborhood.Sums, v Vertex) state {
	s := state{
		label:   view.Label(v),
		audit:   view.Audit(v),
		profile: profile{own: view.Prediction(v), votes: sums.Votes(v)},
		version: view.Version(v),
		time:    view.LabelTime(v),
		fresh:   t.pairs.Fresh(view, v),
	}
	s.setObserved(view.Evidence(v))
	return s
}

// count adds (sign 1) or takes back (sign -1) a member of the given state.
func (t *Tallies) count(c *community, s *state, multiplicity uint32, sign int) {
	if multiplicity == 0 {
		return
	}
	m := uint64(sign) * uint64(multiplicity) // two's complement: -1 subtracts
	c.members += m
	c.observations.count(s, sign)
	if s.known() {
		c.known += uint64(sign)
		c.knownSquares.Add(float64(multiplicity)*float64(multiplicity)*squareScale, sign)
	}
	if s.audited() {
		c.countAudit(s, float64(multiplicity), sign)
	}
	if s.labelled() {
		c.labelled += m
		c.anchored[s.label.Class] += m * uint64(s.fresh)
	} else if s.profile.own != nil {
		for int(s.version) >= len(c.versions) {
			c.versions = append(c.versions, 0)
		}
		c.versions[s.version] += m
	}
	if s.profile.own != nil && s.fresh < pairs.Whole {
		t.countProfile(c, s, multiplicity, sign)
	}
}

// countProfile counts the prediction of a member with the part that no fresh label determines.
func (t *Tallies) countProfile(c *community, s *state, multiplicity uint32, sign int) {
	open := uint64(multiplicity) * uint64(pairs.Whole-s.fresh)
	c.profiled += uint64(sign) * open // two's complement: -1 subtracts
	m := float64(open) / pairs.Whole
	c.squares.Add(float64(m*m)*squareScale, sign)
	for kind := range whole {
		if t.keep.has(kind) {
			accumulate(c.p[kind], s.profile.phi(t.phi, kind), m, sign)
		}
	}
	if !t.keep.Means {
		t.countSquare(c, s.profile.own, m, sign)
	}
}

// squareScale scales the square of the largest multiplicity to 2^32; that of 1/pairs.Whole is still
// exact.
const squareScale = 0x1p-32

// predicted returns the multiplicity of the members with an estimated class: each with a
// prediction, and with the part that no fresh label determines.
func (c *community) predicted() float64 { return float64(c.profiled) / pairs.Whole }

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
