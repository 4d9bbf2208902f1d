package quant

import (
	"strconv"
	"strings"
)

// Flags of an estimate. A flag may carry a detail after a colon: classes as a
// comma list ("thin:0,3") or the pair that is confused ("ill-conditioned:2~5").
// FlagName cuts the detail off. Names never change their meaning.
const (
	FlagThin           = "thin"
	FlagUnsupported    = "unsupported-class"
	FlagUnreachable    = "no-label-reachable"
	FlagIllConditioned = "ill-conditioned"
	FlagLowCoverage    = "low-coverage"
	FlagUnseen         = "unseen-profile"
	FlagShift          = "shift-disagreement"
	FlagClustered      = "clustered-labels"
	FlagAssumption     = "assumption-failed"
	FlagFewAudits      = "few-audits"
	FlagAuditReach     = "audit-reach"
	FlagNoMembers      = "no-members"
	FlagNoCoverage     = "no-coverage"
	FlagNoLabels       = "no-labels"
	FlagMixedModel     = "mixed-model"
	FlagModelSwitching = "model-switching"
	FlagAtypical       = "labels-not-typical"
	FlagNewPosterior   = "new-posterior"
	FlagVarianceBound  = "variance-bound"
	FlagDrift          = "classifier-drift"
	FlagCutShort       = "cut-short"
	FlagBelowFloor     = "below-privacy-floor"
)

const (
	atypicalAbove = 3.0  // standard errors of the mean posterior of the labels
	thinBelow     = 30.0 // effective labels per class
	coverageLow   = 0.8  // share of unlabelled members with a prediction
	blurredBelow  = 0.1  // smallest singular value of C on vectors that sum to zero
	// shiftConfidence is the confidence that sis and diff disagree, over all
	// classes together, from which on it is flagged.
	shiftConfidence = 0.99
)

// FlagDoc explains a flag: its meaning, and the action that it asks for.
type FlagDoc struct{ Name, Meaning, Action string }

var flagDocs = []FlagDoc{
	{
		FlagThin, "fewer than 30 effective calibration labels in the classes named",
		"label more vertices of these classes near the community, or lower lambda",
	},
	{
		FlagUnsupported, "no calibration label with weight in the classes named: they get no share, or next to none, and the interval 0..1",
		"label vertices of these classes; the other shares assume that these do not occur",
	},
	{
		FlagUnreachable, "hardly a walk from the community ends at a calibration label, so every label weighs the same (lambda 0)",
		"label vertices in or near the community",
	},
	{
		FlagIllConditioned, "the classifier hardly tells the two classes named apart: their shares trade against each other",
		"use auto or diff, a neighbourhood-aware method, or a better classifier; read the sum of the two shares",
	},
	{
		FlagLowCoverage, "fewer than 80 % of the unlabelled members have a prediction; the others are assumed to be alike",
		"predict the missing members",
	},
	{
		FlagUnseen, "over a fifth of what the classifier says of members or their neighbours it says of hardly any calibration label",
		"label some of these members (nothing can be learnt from the others; the interval allows for that), or use diff, pacc or sis",
	},
	{
		FlagShift, "sis and diff, or both ends of auto, differ beyond their errors in the classes named: the classifier errs differently in this community",
		"trust neither alone; label some members and compare",
	},
	{
		FlagClustered, "the calibration labels have more edges among them than chance would give: they come from few places",
		"spread the labels over the graph; auto reads every community as a place until then, and its intervals may be too short",
	},
	{
		FlagAssumption, "audit labels show other shares in the classes named than auto expected: an assumption of auto does not hold in this community",
		"believe the record, which leans on the audit labels now; audit_points says how far auto was off; ask for more labels here",
	},
	{
		FlagFewAudits, "the method audit has fewer than 10 audit labels among the members, or such that do not stand for all of them",
		"label what gqlstream ask draws",
	},
	{
		FlagAuditReach, "the audit labels stand for fewer than 80 % of the members, or for more than there are, and are not used",
		"ask again: they were drawn from another community, many were not answered, or the community has changed; those that are there are taken over",
	},
	{
		FlagNoMembers, "the community has no members; the shares are those of the calibration labels",
		"add members, or stop tracking it",
	},
	{
		FlagNoCoverage, "no unlabelled member has a prediction; their shares are those of the calibration labels",
		"predict the members",
	},
	{
		FlagNoLabels, "no calibration label has a prediction; the shares are the mean prediction, or equal",
		"add labels with the role calibrate",
	},
	{
		FlagMixedModel, "some members have a prediction of your model, others one of the built-in classifier; both errors are read as one",
		"predict all vertices, or none",
	},
	{
		FlagModelSwitching, "predictions of another model version are arriving, or have replaced those of the last estimate",
		"wait until the new version has covered the labels; changes around the switch are the model's, not the community's",
	},
	{
		FlagAtypical,
		"the calibration labels are unlike the graph: the mean posterior of a class differs by more than three standard errors; auto corrects for classes that answer more often, not for places",
		"draw labels at random (see ask), or declare labels.drawn",
	},
	{
		FlagNewPosterior, "auto has fitted the coefficients of its posterior anew since the last estimate",
		"nothing: a change at this estimate is in part that of the fit, and its standard error says so",
	},
	{
		FlagDrift, "labels that arrive now show more errors than the first labels of this model version",
		"look at the accuracy by class in the status; train anew, and label more until then: old labels understate the errors",
	},
	{
		FlagVarianceBound, "the spread of the kernel over the labels is not yet known for this community: the interval is wide",
		"wait: it is computed within the next emissions",
	},
	{
		FlagCutShort, "more than members_max vertices are within the hops of this ego network: members are those within fewer hops",
		"raise members_max, or ask for fewer hops; the page of the community says how many hops count now",
	},
	{
		FlagBelowFloor,
		"fewer members than the privacy floor have a label or a prediction, or a few of them outweigh the rest:" +
			" nothing else is published",
		"enlarge the community, or let more of its members have predictions",
	},
}

// FlagDocs returns every flag with its meaning and what to do about it.
func FlagDocs() []FlagDoc { return append([]FlagDoc(nil), flagDocs...) }

// FlagName returns a flag without its detail.
func FlagName(flag string) string {
	name, _, _ := strings.Cut(flag, ":")
	return name
}

// flagged appends a flag that names the classes for which bad holds; it appends
// nothing when there is none.
func flagged(flags []string, name string, k int, bad func(class int) bool) []string {
	var classes []string
	for i := range k {
		if bad(i) {
			classes = append(classes, strconv.Itoa(i))
		}
	}
	if classes == nil {
		return flags
	}
	return append(flags, name+":"+strings.Join(classes, ","))
}
