package stats

// Memory holds the parts of one estimate that auto keeps for the next ones of the same community.
type Memory struct {
	Posterior uint64    // version of the coefficients
	Gamma     float64   // how far the community was selected by class
	Likely    []float64 // K: q(1)
	Residual  []float64 // K: the part of the labels' mean residual that was added for a place
	// ModelWeight is the weight of the model's answer next to labels' own shares and audit labels.
	ModelWeight float64   `column:"lean"`
	Flow        []float64 // K: q(gamma) of all members with a prediction
	Carried     []float64 // K: how far shares had moved when the coefficients were fitted again
	ToLabels    float64   // weight of the labels' own shares in the answer
	Counted     []float64 // K: calibration labels, each with its weight
	Stale       float64   // part of them that no longer described their vertices
	Evidence    float64   // for a selection by class, averaged over Seen records
	Seen        float64
	Error       CoefficientError
}

// CoefficientError is the error that the coefficients of the posterior make in an estimate of auto.
// Computing it takes a pass over a sample of labels, and it hardly changes from one second to the
// next, so a later estimate takes it over while that holds.
type CoefficientError struct {
	ErrorAt        []float64 // K + 5: where it was computed
	ErrorVariance  []float64 // K
	ErrorInfluence []float64 // K a column; nil where it is that of earlier coefficients
	ErrorTurned    float64   // members that joined or left since, as in Turnover
}

// Turnover counts how the unlabelled members with a prediction of one community differ between two
// estimates, as sums of squared multiplicities: plain counts where all multiplicities are one. A
// member with a changed profile has left and joined by the square of the share of the profile that
// is another one now: whole, if they have nothing in common. So it has when its posterior moved.
// Where it is not known, Joined and Left over all members are safe.
type Turnover struct {
	Stayed, Joined, Left float64
	Reset                bool // another model's predictions, or another method: nothing cancels
}
