package evaluate

// FlagHelp has help texts that are too long for the tag of a flag's field, by the name
// that the tag gives it.
var FlagHelp = map[string]string{
	"shifts": "Shifts to draw communities under: pps, cov, degree, surest, one, bfs, rw, " +
		"members, group:ATTRIBUTE. [pps,bfs,rw]",
	"evaluate_splits":      "Random splits of the labels into calibration and hidden.",
	"evaluate_per_class":   "Communities per class and split, of all but members and groups.",
	"evaluate_size":        "Members of a community, of all but members and groups.",
	"evaluate_members_min": "Different members that a community must have.",
	"calibration":          "Share of the labels that calibrate in a split; the others are hidden.",
	"draw": "Draw of calibration labels: random; balanced (equal numbers a " +
		"class); response (one class answers a third as often).",
	"evaluate_ask": "Then draw N members of each community as gqlstream ask does, label them, " +
		"and estimate again.",
}
