package evaluate

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gqlstream/graphstore"
	"gqlstream/incremental/neighborhood"
	"gqlstream/ingest/event"
)

// Calibration labels and the vertices that communities are drawn from must be
// disjoint in every split, make up all labels that are not for training, and
// differ between splits.
func TestSplitsAreDisjoint(t *testing.T) {
	w := &world{seed: 1, n: 400, k: 3, train: 50}
	c := w.config("auto").WithDefaults()
	c.Protocols = []string{pps, bfs, rw, "group:parity"}
	d := w.data(t, c)
	if len(d.labelled) != 350 {
		t.Fatalf("%d vertices to split, want the 350 without the role train", len(d.labelled))
	}
	var before []graphstore.Vertex
	for split := range 5 {
		bags, calibration, err := d.draw(c, split)
		if err != nil {
			t.Fatal(err)
		}
		if len(calibration) != 52 { // 15 % of 350, rounded down
			t.Fatalf("split %d: %d calibration labels, want 52", split, len(calibration))
		}
		if slices.Equal(calibration, before) {
			t.Fatalf("split %d is the one before", split)
		}
		before = calibration
		for _, b := range bags {
			for _, m := range b.members {
				if slices.Contains(calibration, m.vertex) {
					t.Fatalf(
						"split %d: %s has the calibration vertex %v", split, b.name,
						d.ids[m.vertex],
					)
				}
				if indexOf(t, d, m.vertex) < w.train {
					t.Fatalf("split %d: %s has the train vertex %v", split, b.name, d.ids[m.vertex])
				}
			}
		}
	}
}

// Communities of pps must have shares 1/rank over the classes, by largest
// remainders, in an order that is random; within a class no vertex twice.
func TestPriorShiftHasZipfShares(t *testing.T) {
	w := &world{seed: 2, n: 600, k: 3}
	c := w.config("auto").WithDefaults()
	c.Protocols, c.Size, c.PerClass = []string{pps}, 110, 20
	d := w.data(t, c)
	bags, _, err := d.draw(c, 0)
	if err != nil {
		t.Fatal(err)
	}
	if len(bags) != 60 {
		t.Fatalf("%d communities, want 20 for each of 3 classes", len(bags))
	}
	orders := map[[3]float64]int{}
	for _, b := range bags {
		orders[[3]float64(b.truth)]++
		got := slices.Sorted(slices.Values(b.truth))
		want := []float64{20. / 110, 30. / 110, 60. / 110} // of 110: 60, 30, 20
		for i := range want {
			if math.Abs(got[i]-want[i]) > 1e-12 {
				t.Fatalf("%s: shares %v, want %v in some order", b.name, got, want)
			}
		}
		for _, m := range b.members {
			if m.multiplicity != 1 {
				t.Fatalf("%s: vertex %v %d times", b.name, d.ids[m.vertex], m.multiplicity)
			}
		}
	}
	if len(orders) != 6 {
		t.Errorf("%d orders of the classes in %d communities, want all 6", len(orders), len(bags))
	}
}

// A class with too few hidden vertices must be repeated evenly, and a class with
// none must leave its place in the order to others.
func TestPriorShiftRepeatsScarceClasses(t *testing.T) {
	p := &pool{byClass: [][]graphstore.Vertex{{1, 2, 3}, nil, {4, 5, 6, 7, 8, 9}}}
	drawn := p.zipf(
		Config{PerClass: 5, Size: 30, MembersMin: 1},
		rand.New(rand.NewPCG(1, 1)),
		p.byClass,
	)
	if len(drawn) != 10 {
		t.Fatalf("%d communities, want 5 for each class that has vertices", len(drawn))
	}
	for _, one := range drawn {
		counts := map[bool]int{}
		for v, m := range one.members {
			counts[v <= 3] += int(m)
			if share := 20 / 6; v > 3 && (int(m) < 10/6 || int(m) > share+1) {
				t.Errorf("vertex %d of 6 that share 10 or 20 has %d", v, m)
			}
		}
		if got := [2]int{counts[true], counts[false]}; got != [2]int{10, 20} &&
			got != [2]int{20, 10} {
			t.Errorf("counts %v, want 20 and 10", got)
		}
	}
}

// Largest remainders must sum to n and stay within one of the exact numbers.
func TestApportionIsWithinOne(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	for round := range 2000 {
		shares := make([]float64, 1+r.IntN(9))
		var total float64
		for i := range shares {
			shares[i] = r.ExpFloat64()
			total += shares[i]
		}
		n, sum := r.IntN(300), 0
		for i := range shares {
			shares[i] /= total
		}
		for i, count := range apportion(shares, n) {
			sum += count
			if math.Abs(float64(count)-shares[i]*float64(n)) > 1+1e-9 {
				t.Fatalf("round %d: %d of share %v of %d", round, count, shares[i], n)
			}
		}
		if sum != n {
			t.Fatalf("round %d: %d in all, want %d", round, sum, n)
		}
	}
}

// distances from the root by breadth first, over the whole graph; -1 where there
// is no path.
func distances(view graphstore.View, root graphstore.Vertex) []int {
	out := make([]int, view.Vertices())
	for i := range out {
		out[i] = -1
	}
	out[root] = 0
	for queue := []graphstore.Vertex{root}; len(queue) > 0; queue = queue[1:] {
		for _, u := range view.Neighbors(queue[0]) {
			if out[u] < 0 {
				out[u] = out[queue[0]] + 1
				queue = append(queue, u)
			}
		}
	}
	return out
}

// A ball must hold the hidden vertices nearest to its root: no hidden vertex left
// out is nearer than one taken in. It must have the size asked for, or the whole
// component.
func TestBallsAreTheNearestHiddenVertices(t *testing.T) {
	w := &world{seed: 4, n: 500, k: 4, islands: 80, train: 30}
	c := w.config("auto").WithDefaults()
	d := w.data(t, c)
	p := newPool(d, d.labelled[100:])
	r := rand.New(rand.NewPCG(4, 4))
	for range 200 {
		root := d.labelled[100+r.IntN(len(d.labelled)-100)]
		ball := p.ball(root, c, r)
		away := distances(d.view, root)
		farthest, nearest, reachable := 0, math.MaxInt, 0
		for v := range graphstore.Vertex(d.view.Vertices()) {
			if !p.hidden[v] {
				if ball[v] != 0 {
					t.Fatalf("ball of %v has %v, which is not hidden", d.ids[root], d.ids[v])
				}
				continue
			}
			if away[v] >= 0 {
				reachable++
			}
			switch {
			case ball[v] == 1 && away[v] < 0:
				t.Fatalf("ball of %v has %v, which is not connected", d.ids[root], d.ids[v])
			case ball[v] == 1:
				farthest = max(farthest, away[v])
			case away[v] >= 0:
				nearest = min(nearest, away[v])
			}
		}
		if farthest > nearest {
			t.Fatalf(
				"ball of %v takes a vertex at %d and leaves one at %d", d.ids[root], farthest,
				nearest,
			)
		}
		if want := min(c.Size, reachable); len(ball) != want {
			t.Fatalf("ball of %v has %d vertices, want %d", d.ids[root], len(ball), want)
		}
	}
}

// Walks must end where ten steps with teleport 0.1 end, given that the end is
// hidden: the exact distribution of the chain, within five standard errors.
func TestWalksFollowTheirDistribution(t *testing.T) {
	w := &world{seed: 5, n: 60, k: 2}
	c := w.config("auto").WithDefaults()
	c.Size = 40_000
	d := w.data(t, c)
	p := newPool(d, d.labelled[20:])
	root := d.labelled[30]
	got := p.walks(root, c, rand.New(rand.NewPCG(5, 5)))

	at := make([]float64, d.view.Vertices())
	at[root] = 1
	for range walkSteps {
		next := make([]float64, len(at))
		for v, x := range at {
			neighbors := d.view.Neighbors(graphstore.Vertex(v))
			next[root] += x * walkTeleport
			for _, u := range neighbors {
				next[u] += x * (1 - walkTeleport) / float64(len(neighbors))
			}
		}
		at = next
	}
	var hidden float64
	for v, x := range at {
		if p.hidden[v] {
			hidden += x
		}
	}
	total := 0
	for v, x := range at {
		n := int(got[graphstore.Vertex(v)])
		total += n
		share := 0.0
		if p.hidden[v] {
			share = x / hidden
		}
		want := share * float64(c.Size)
		if math.Abs(float64(n)-want) > 5*math.Sqrt(want)+1e-9 {
			t.Errorf("%d of %d walks end at %v, want %.0f", n, c.Size, d.ids[v], want)
		}
	}
	if total != c.Size {
		t.Errorf("%d walks, want %d", total, c.Size)
	}
}

// Roots with fewer different hidden vertices around them than asked for must be
// drawn again, so that no community is smaller; with a minimum of one, the small
// ones must come.
func TestSmallCommunitiesAreDrawnAgain(t *testing.T) {
	w := &world{seed: 6, n: 400, k: 2, islands: 200}
	for _, least := range []int{11, 1} {
		c := w.config("auto").WithDefaults()
		c.Protocols, c.PerClass, c.MembersMin = []string{bfs, rw}, 30, least
		d := w.data(t, c)
		bags, _, err := d.draw(c, 0)
		if err != nil {
			t.Fatal(err)
		}
		if len(bags) != 120 {
			t.Errorf(
				"minimum %d: %d communities, want 30 for each of 2 classes and protocols",
				least,
				len(bags),
			)
		}
		smallest := math.MaxInt
		for _, b := range bags {
			smallest = min(smallest, len(b.members))
		}
		if smallest < least || least == 1 && smallest > 4 {
			t.Errorf("minimum %d: the smallest community has %d vertices", least, smallest)
		}
	}
}

// group:KEY must draw one community for each value of the attribute, of all the
// hidden vertices that have it; vertices without the attribute belong to none.
func TestGroupsAreTheVerticesOfAValue(t *testing.T) {
	w := &world{seed: 7, n: 300, k: 3}
	c := w.config("auto").WithDefaults()
	c.Protocols = []string{"group:parity", "group:flag"}
	d := w.data(t, c)
	bags, calibration, err := d.draw(c, 1)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]int{`group:parity/"even"`: 0, `group:parity/"odd"`: 0, "group:flag/true": 0}
	for _, v := range d.labelled {
		if slices.Contains(calibration, v) {
			continue
		}
		i := indexOf(t, d, v)
		want[[]string{`group:parity/"even"`, `group:parity/"odd"`}[i%2]]++
		if i%10 == 0 {
			want["group:flag/true"]++
		}
	}
	if len(bags) != len(want) {
		t.Errorf("%d communities, want %d", len(bags), len(want))
	}
	for _, b := range bags {
		if len(b.members) != want[b.name] {
			t.Errorf("%s has %d members, want %d", b.name, len(b.members), want[b.name])
		}
	}
}

// members must draw the communities of the data, of their hidden members, with
// their multiplicities.
func TestMembersAreTheCommunitiesOfTheData(t *testing.T) {
	w := &world{seed: 8, n: 200, k: 2}
	more := &event.Batch{}
	for v := range 60 {
		more.Members = append(
			more.Members,
			event.Member{Community: "mine", Vertex: w.id(v), Multiplicity: uint32(1 + v%3)},
		)
	}
	c := w.config("auto").WithDefaults()
	c.Protocols = []string{members}
	d := w.data(t, c, more)
	bags, calibration, err := d.draw(c, 0)
	if err != nil {
		t.Fatal(err)
	}
	if len(bags) != 1 || bags[0].name != "members/mine" {
		t.Fatalf("drew %d communities, want members/mine alone", len(bags))
	}
	want := 60
	for _, v := range calibration {
		if indexOf(t, d, v) < 60 {
			want--
		}
	}
	if len(bags[0].members) != want {
		t.Errorf("%d members, want the %d hidden ones", len(bags[0].members), want)
	}
	for _, m := range bags[0].members {
		if i := indexOf(t, d, m.vertex); int(m.multiplicity) != 1+i%3 {
			t.Errorf("v%d has multiplicity %d, want %d", i, m.multiplicity, 1+i%3)
		}
	}
}

// members must draw the communities that the configuration defines, too.
func TestMembersAreAlsoThoseOfRules(t *testing.T) {
	w := &world{seed: 10, n: 200, k: 2}
	c := w.config("auto").WithDefaults()
	c.Protocols = []string{members}
	c.Core.Communities = []graphstore.Rule{
		{Name: "all", Kind: graphstore.Everyone},
		{
			Name:  "odd",
			Kind:  graphstore.ByAttribute,
			Key:   "parity",
			Value: event.Value{Kind: event.StringValue, Text: "odd"},
		},
	}
	d := w.data(t, c)
	bags, calibration, err := d.draw(c, 0)
	if err != nil {
		t.Fatal(err)
	}
	odd := 100
	for _, v := range calibration {
		odd -= indexOf(t, d, v) % 2
	}
	if len(bags) != 2 || len(bags[0].members) != 170 || len(bags[1].members) != odd {
		t.Errorf(
			"%d communities; want everyone's 170 hidden vertices and the %d odd ones",
			len(bags),
			odd,
		)
	}
	if len(c.estimator(nil).Communities) != 0 {
		t.Error("the core tracks the communities of the data, too")
	}
}

// The truth of a community must be the shares of its members' classes by
// multiplicity.
func TestTruthCountsMultiplicities(t *testing.T) {
	w := &world{seed: 9, n: 30, k: 3}
	d := w.data(t, w.config("auto"))
	members := map[graphstore.Vertex]uint32{}
	for i, m := range map[int]uint32{0: 5, 1: 2, 4: 1, 2: 2} { // classes 0, 1, 1, 2
		v, _ := d.view.Lookup(w.id(i))
		members[v] = m
	}
	b := d.bag(pps, drawn{"0", members})
	if want := []float64{0.5, 0.3, 0.2}; !slices.Equal(b.truth, want) || b.size != 10 {
		t.Errorf("truth %v of %d, want %v of 10", b.truth, b.size, want)
	}
}

// The shifts that break assumptions must fit their names: cov has Zipf shares of predicted
// classes, one has one class, degree has more edges than all.
func TestBreakingShiftsFitTheirNames(t *testing.T) {
	w := &world{seed: 6, n: 600, k: 3}
	c := w.config("auto").WithDefaults()
	c.Protocols, c.Size, c.PerClass = []string{cov, byDegree, one}, 55, 10
	d := w.data(t, c)
	bags, _, err := d.draw(c, 0)
	if err != nil {
		t.Fatal(err)
	}
	all := 2 * float64(d.view.Edges()) / float64(d.view.Vertices())
	counts, popular := map[string]int{}, 0.0
	for _, b := range bags {
		counts[b.protocol]++
		says, degree := make([]float64, 3), 0.0
		for _, m := range b.members {
			says[neighborhood.HardClass(d.view.Prediction(m.vertex))]++
			degree += float64(len(d.view.Neighbors(m.vertex))) / float64(len(b.members))
		}
		switch b.protocol {
		case cov:
			if slices.Sort(says); !slices.Equal(says, []float64{10, 15, 30}) {
				t.Errorf("%s: the classifier says %v, want 10, 15 and 30", b.name, says)
			}
		case one:
			if slices.Max(b.truth) != 1 {
				t.Errorf("%s: shares %v", b.name, b.truth)
			}
		case byDegree:
			popular += degree / 30
		}
	}
	if counts[cov] != 30 || counts[byDegree] != 30 || counts[one] != 30 {
		t.Errorf("%v communities, want 30 of each", counts)
	}
	if popular < 1.1*all {
		t.Errorf(
			"members drawn by degree have %.2f edges on average, all vertices %.2f",
			popular,
			all,
		)
	}
}
