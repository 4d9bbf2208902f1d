package pipeline

import (
	"cmp"
	"slices"
	"time"

	"gqlstream/graphstore"
	"gqlstream/incremental"
	"gqlstream/ingest/event"
	"gqlstream/sinks/web"
)

const (
	// confusionCells bounds the counts of all communities in the answer about the classifier.
	confusionCells = 20_000
	// confusionCommunities bounds the communities in it.
	confusionCommunities = 100
	// periodLabels are the least labels of a period of the confusion.
	periodLabels = 30
	// periodsMost bounds the periods.
	periodsMost = 6
)

// judged is a calibration label with the prediction of its time.
type judged struct {
	vertex           graphstore.Vertex
	class, predicted event.Class
	at               event.Time
}

// countConfusion counts the calibration labels by true class and by the class that the classifier
// gave most probability at the time of the label: over all, for the communities with most labels,
// and for periods of equal numbers of labels. Only predictions of the model version in use are
// counted. Under a privacy floor communities below it are absent, and each count is rounded to a
// multiple of the floor.
func countConfusion(core *incremental.Core, floor, classes int) web.Confusion {
	view := core.View()
	active, known := view.ActiveVersion()
	out := web.Confusion{Floor: floor}
	if known {
		out.Version = view.Versions()[active]
	}
	var pairs []judged
	core.ForPairs(func(v graphstore.Vertex, version uint32, units []uint32) {
		if known && version != active {
			return
		}
		said := slices.Index(units, slices.Max(units)) // the lowest class on ties
		pairs = append(pairs, judged{
			vertex: v, class: view.Label(v).Class,
			predicted: event.Class(said), at: view.LabelTime(v),
		})
	})
	all := web.NewCounts(classes)
	for _, p := range pairs {
		all[p.class][p.predicted]++
	}
	out.All = all.Rounded(floor)
	out.Communities = confusionByCommunity(core, pairs, floor, classes)
	out.Periods = confusionByPeriod(pairs, floor, classes)
	return out
}

// confusionByCommunity counts the labels of the communities that have most of them, most first.
func confusionByCommunity(
	core *incremental.Core, pairs []judged, floor, classes int,
) []web.CommunityConfusion {
	view := core.View()
	labels := make([]int, view.Communities())
	for _, p := range pairs {
		for _, m := range view.MemberOf(p.vertex) {
			labels[m.Community]++
		}
	}
	var order []graphstore.Community
	for c, n := range labels {
		id := graphstore.Community(c)
		if n > 0 && n >= floor &&
			(floor <= 1 || !core.BelowFloor(view.CommunityName(id), floor)) {
			order = append(order, id)
		}
	}
	slices.SortStableFunc(order, func(a, b graphstore.Community) int {
		return cmp.Compare(labels[b], labels[a])
	})
	most := max(1, min(confusionCommunities, confusionCells/(classes*classes)))
	order = order[:min(len(order), most)]
	of := make(map[graphstore.Community]web.Counts, len(order))
	for _, c := range order {
		of[c] = web.NewCounts(classes)
	}
	for _, p := range pairs {
		for _, m := range view.MemberOf(p.vertex) {
			if counts := of[m.Community]; counts != nil {
				counts[p.class][p.predicted]++
			}
		}
	}
	list := make([]web.CommunityConfusion, len(order))
	for i, c := range order {
		list[i] = web.CommunityConfusion{
			Community: view.CommunityName(c), Counts: of[c].Rounded(floor),
		}
	}
	return list
}

// confusionByPeriod divides the labels by their time into periods of about equal numbers. Labels of
// one time stay together. Labels without a time are in none.
func confusionByPeriod(pairs []judged, floor, classes int) []web.PeriodConfusion {
	pairs = slices.DeleteFunc(slices.Clone(pairs), func(p judged) bool { return p.at == 0 })
	slices.SortFunc(pairs, func(a, b judged) int { return cmp.Compare(a.at, b.at) })
	least := max(periodLabels, floor, (len(pairs)+periodsMost-1)/periodsMost)
	list := []web.PeriodConfusion{}
	counts, begin := web.NewCounts(classes), 0
	for i, p := range pairs {
		counts[p.class][p.predicted]++
		left := len(pairs) - 1 - i
		if left > 0 && (i+1-begin < least || left < least || pairs[i+1].at == p.at) {
			continue
		}
		list = append(list, web.PeriodConfusion{
			From:   time.Unix(0, int64(pairs[begin].at)).UTC(),
			To:     time.Unix(0, int64(p.at)).UTC(),
			Counts: counts.Rounded(floor),
		})
		counts, begin = web.NewCounts(classes), i+1
	}
	return list
}
