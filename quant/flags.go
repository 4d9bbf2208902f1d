package quant

import (
	"strconv"
	"strings"

	"gonum.org/v1/gonum/floats"
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
	FlagOldEvidence    = "old-evidence"
	FlagNewPosterior   = "new-posterior"
	FlagVarianceBound  = "variance-bound"
	FlagDrift          = "classifier-drift"
	FlagCutShort       = "cut-short"
	FlagBelowFloor     = "below-privacy-floor"
)

const (
	thinBelow       = 30.0 // effective labels per class
	coverageLow     = 0.8  // share of unlabelled members with a prediction
	recentBelow     = 0.25 // mean mass of the members' predictions
	labelFreshBelow = 0.5  // mean freshness of the calibration labels
	lagAbove        = 0.5  // part of a variance that is how far shares may be behind
)

// FlagDoc explains a flag: its meaning, and the action that it asks for.
type FlagDoc struct{ Name, Meaning, Action string }

var flagDocs = []FlagDoc{
	{
		FlagThin, "fewer than 30 effective calibration labels in the classes named",
		"label more vertices of these classes near the community, or lower lambda",
	},
	{
		FlagUnsupported,
		"no calibration label with weight in the classes named: their share is about zero, with " +
			"the interval 0..1",
		"label vertices of these classes; the other shares assume that these classes do not occur",
	},
	{
		FlagUnreachable,
		"almost no walk from the community ends at a calibration label, so all labels weigh the " +
			"same (lambda 0)",
		"label vertices in or near the community",
	},
	{
		FlagIllConditioned,
		"the classifier confuses the two classes named: an error moves weight from one share to " +
			"the other",
		"use auto or diff, a neighbourhood-aware method, or a better classifier; read the sum of " +
			"the two shares",
	},
	{
		FlagLowCoverage,
		"fewer than 80 % of the unlabelled members have a prediction; the other members are " +
			"assumed to be alike",
		"predict the missing members",
	},
	{
		FlagUnseen,
		"more than a fifth of the members have predictions that almost no calibration label has",
		"label some of these members, or use diff, pacc or sis; the interval allows for the " +
			"unknown part",
	},
	{
		FlagShift,
		"sis and diff, or the two readings of auto, differ by more than their errors in the " +
			"classes named: the classifier errs differently in this community",
		"trust neither alone; label some members and compare",
	},
	{
		FlagClustered,
		"the calibration labels have more edges among them than chance gives: they come from few " +
			"places",
		"spread the labels over the graph; until then auto treats every community as a place, " +
			"and its intervals may be too short",
	},
	{
		FlagAssumption,
		"audit labels contradict auto in the classes named: an assumption of auto does not hold " +
			"in this community",
		"use the record, which now relies on the audit labels; audit_points is the error of " +
			"auto; ask for more labels here",
	},
	{
		FlagFewAudits,
		"the method audit has fewer than 10 audit labels among the members, or labels that do " +
			"not stand for all members",
		"label the vertices that gqlstream ask draws",
	},
	{
		FlagAuditReach,
		"the audit labels stand for fewer than 80 % of the members, or for too many, and are not " +
			"used",
		"ask again: the labels were drawn from another community, many questions were not " +
			"answered, or the community has changed; the new draw includes the present labels",
	},
	{
		FlagNoMembers,
		"the community has no members; the shares are those of the calibration labels",
		"add members, or stop tracking it",
	},
	{
		FlagNoCoverage,
		"no unlabelled member has a prediction; their shares are those of the calibration labels",
		"predict the members",
	},
	{
		FlagNoLabels,
		"no calibration label has a prediction; the shares are the mean prediction, or equal",
		"add labels with the role calibrate",
	},
	{
		FlagMixedModel,
		"some members have a prediction of your model, others one of the built-in classifier; " +
			"the estimate corrects both alike",
		"predict all vertices, or none",
	},
	{
		FlagModelSwitching,
		"predictions of another model version are arriving, or have replaced the former version",
		"wait until the new version has predicted the labelled vertices; changes around the " +
			"switch come from the model, not from the community",
	},
	{
		FlagAtypical,
		"the mean posterior of the labelled vertices differs from that of the graph by more " +
			"than three standard errors; auto corrects for classes that answer more often, not " +
			"for places",
		"draw labels at random (see ask), or declare labels.drawn",
	},
	{
		FlagOldEvidence,
		"the predictions of most members are old, or the labels no longer say what their " +
			"vertices are, or shares have moved so far that members who have not spoken " +
			"since decide",
		"predict members again, and label some that ask draws; the interval allows for the " +
			"movement that was seen",
	},
	{
		FlagNewPosterior,
		"auto has fitted the coefficients of its posterior since the last estimate",
		"nothing: a part of the change comes from the fit; see revised and se_revised",
	},
	{
		FlagDrift, "new labels show more errors than the first labels of this model version",
		"look at the accuracy by class in the status; train the model again, and label more " +
			"until then: old labels understate the errors",
	},
	{
		FlagVarianceBound,
		"the spread of the kernel over the labels is not yet computed for this community: the " +
			"interval is wide",
		"wait for the next emissions",
	},
	{
		FlagCutShort,
		"more than members_max vertices are within the hops of this ego network, so it has " +
			"fewer hops",
		"raise members_max, or ask for fewer hops; the page of the community says how many hops " +
			"count now",
	},
	{
		FlagBelowFloor,
		"too few members have a label or a prediction, or a few of them outweigh the rest:" +
			" nothing else is published",
		"enlarge the community, or let more of its members have predictions",
	},
}

// RestsOnOldEvidence reports whether an estimate is to be flagged with FlagOldEvidence.
func (e *Estimate) RestsOnOldEvidence() bool {
	return isBehind(e.SE, e.SELag) || e.Recent > 0 && e.Recent < recentBelow ||
		e.Posterior > 0 && e.LabelFreshness < labelFreshBelow
}

// IsBehind reports whether most of the error of the estimate is how far it may be behind.
func (s *Snapshot) IsBehind() bool { return isBehind(s.SE, s.Lag) }

// HasStaleLabels reports whether most calibration labels no longer describe their vertices.
func (s *Snapshot) HasStaleLabels() bool { return 1-s.Memory.Stale < labelFreshBelow }

// isBehind reports whether lagAbove of the variances, se², is that of being behind.
func isBehind(se, lag []float64) bool {
	return floats.Dot(lag, lag) > lagAbove*floats.Dot(se[:len(lag)], se[:len(lag)])
}

// FlagDocs returns every flag with its meaning and advice.
func FlagDocs() []FlagDoc { return append([]FlagDoc(nil), flagDocs...) }

// FlagName returns a flag without its detail.
func FlagName(flag string) string {
	name, _, _ := strings.Cut(flag, ":")
	return name
}

// flagged appends a flag that names the classes where bad returns true; it appends
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
