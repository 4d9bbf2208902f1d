package web

import "time"

// Counts are numbers of labels by true class, then by predicted class: K x K.
type Counts [][]uint64

// NewCounts returns K x K zeros.
func NewCounts(classes int) Counts {
	counts := make(Counts, classes)
	cells := make([]uint64, classes*classes)
	for k := range counts {
		counts[k] = cells[k*classes : (k+1)*classes : (k+1)*classes]
	}
	return counts
}

// Rounded rounds each count to the nearest multiple of a privacy floor, half a floor up, and
// returns the counts. A floor of 0 or 1 changes nothing.
func (c Counts) Rounded(floor int) Counts {
	if floor <= 1 {
		return c
	}
	m := uint64(floor)
	for _, row := range c {
		for k, n := range row {
			row[k] = (2*n + m) / (2 * m) * m
		}
	}
	return c
}

// Confusion says which class the classifier took for which: it counts calibration labels by true
// class and by the likeliest class of the prediction of that time.
type Confusion struct {
	Position    uint64               `json:"position"` // 0: not counted yet
	Version     string               `json:"version"`  // of the model; others are not counted
	Floor       int                  `json:"floor"`    // counts are its multiples; 0, 1: exact
	All         Counts               `json:"all"`
	Communities []CommunityConfusion `json:"communities"` // most labels first, a bounded number
	Periods     []PeriodConfusion    `json:"periods"`     // by the time of the label, oldest first
}

// CommunityConfusion counts the labels of a community's members.
type CommunityConfusion struct {
	Community string `json:"community"`
	Counts    Counts `json:"counts"`
}

// PeriodConfusion counts the labels that were given in a period of log time, both ends included.
type PeriodConfusion struct {
	From   time.Time `json:"from"`
	To     time.Time `json:"to"`
	Counts Counts    `json:"counts"`
}

// withLists returns the confusion with zeros and empty lists in place of nil, which is null in
// JSON.
func (c Confusion) withLists(classes int) Confusion {
	if c.All == nil {
		c.All = NewCounts(classes)
	}
	if c.Communities == nil {
		c.Communities = []CommunityConfusion{}
	}
	if c.Periods == nil {
		c.Periods = []PeriodConfusion{}
	}
	return c
}
