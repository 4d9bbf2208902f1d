package evaluate

import (
	"math/rand/v2"

	"gqlstream/graphstore"
	"gqlstream/ingest/event"
)

// The ways to draw calibration labels.
const (
	drawRandom   = "random"
	drawBalanced = "balanced" // as many of each class, as far as they go
	drawResponse = "response" // one class answers a third as often
)

var labelDraws = []string{drawRandom, drawBalanced, drawResponse}

// responseRate is how often the reluctant class of drawResponse answers, if asked.
const responseRate = 1. / 3

// drawLabels divides vertices, which stand in random order, into those with calibration labels
// and those with hidden labels. The reluctant class of a split is that of drawResponse.
func (d *dataset) drawLabels(
	shuffled []graphstore.Vertex, config Config, reluctant event.Class, r *rand.Rand,
) (calibration, hidden []graphstore.Vertex) {
	n := d.calibrating(config.Share)
	var passed []graphstore.Vertex
	room := make([]int, d.classes) // of each class
	for k := range room {
		room[k] = (n + d.classes - 1 - k) / d.classes
	}
	for _, v := range shuffled {
		class := d.view.Label(v).Class
		take := len(calibration) < n
		switch {
		case !take:
		case config.LabelDraw == drawBalanced:
			take = room[class] > 0
			room[class]--
		case config.LabelDraw == drawResponse && class == reluctant:
			take = r.Float64() < responseRate
		}
		if take {
			calibration = append(calibration, v)
		} else {
			passed = append(passed, v)
		}
	}
	more := n - len(calibration) // where a class has too few
	return append(calibration, passed[:more]...), passed[more:]
}
