package web

import "gqlstream/quant"

// Severity says how much a flag matters to a reader of the number.
type Severity string

// Severities, the gravest first.
const (
	wrong       Severity = "wrong" // the number may be wrong
	weak        Severity = "weak"  // the number is right but wide, or old
	information Severity = "information"
)

// readersFlag explains a flag to a reader without knowledge of the methods.
type readersFlag struct {
	name     string
	severity Severity
	title    string // text of a chip
	meaning  string
	action   string
}

// readersFlags are in order of gravity: a list shows the first of a community.
var readersFlags = []readersFlag{
	{
		quant.FlagAssumption, wrong, "was wrong",
		"Labels of randomly drawn members contradict the " +
			"estimate. It now relies on these labels",
		"Draw and label more members of this community",
	},
	{
		quant.FlagDrift, wrong, "classifier got worse",
		"New labels show more errors of the classifier than its first labels did",
		"Look at the page Classifier. Train it again, and label more until then",
	},
	{
		quant.FlagAtypical, wrong, "labels not typical",
		"The labelled people differ from all others: one class answers more often than another",
		"Draw people at random and label them, or declare in the configuration how the " +
			"labels were drawn",
	},
	{
		quant.FlagNoLabels, wrong, "no labels",
		"No label can be compared with a prediction. The number is the plain count of " +
			"the predictions",
		"Label some people",
	},
	{
		quant.FlagNoCoverage, wrong, "no predictions",
		"No member without a label has a prediction",
		"Publish predictions for the members",
	},
	{
		quant.FlagUnsupported, wrong, "class without labels",
		"The classes named have no labels, so their shares are almost zero",
		"Label some people of these classes",
	},
	{
		quant.FlagMixedModel, wrong, "two classifiers",
		"Some members have a prediction of your classifier, others one of the " +
			"built-in classifier",
		"Predict all people with one classifier, or none",
	},
	{
		quant.FlagModelSwitching, wrong, "classifier changes",
		"A new version of the classifier is arriving. A change at this moment is the " +
			"classifier's, not the community's",
		"Wait until the new version has predicted everybody",
	},
	{
		quant.FlagUnseen, wrong, "unlike the labels",
		"More than a fifth of the members have predictions that almost no labelled person has",
		"Label some of these members",
	},
	{
		quant.FlagOldEvidence, weak, "old evidence",
		"Much behind this number is old: most predictions, or the labels, or opinions have moved " +
			"lately and most members have not spoken since. The interval allows for what was seen",
		"Label members that are drawn at random, and predict those again who have spoken",
	},
	{
		quant.FlagThin, weak, "few labels",
		"Fewer than 30 labels count for the classes named, so the interval is wide",
		"Label more people of these classes in or near this community",
	},
	{
		quant.FlagLowCoverage, weak, "members not predicted",
		"More than a fifth of the members have no prediction. They count like the others",
		"Predict the missing members",
	},
	{
		quant.FlagIllConditioned, weak, "classes confused",
		"The classifier confuses the two classes named: an error moves weight from " +
			"one share to the other",
		"Read the sum of the two shares, or improve the classifier",
	},
	{
		quant.FlagClustered, weak, "labels from few places",
		"The labelled people have more edges among them than chance gives",
		"Spread the labels over the graph. The intervals may be too short until then",
	},
	{
		quant.FlagUnreachable, weak, "labels far away",
		"No person near this community is labelled, so all labels count the same",
		"Label people in or near this community",
	},
	{
		quant.FlagFewAudits, weak, "few drawn labels",
		"Fewer than 10 randomly drawn members are labelled",
		"Label the members that the page draws",
	},
	{
		quant.FlagVarianceBound, weak, "interval still wide",
		"The interval of this community is being computed, and is wide until then",
		"Wait for the next estimates",
	},
	{
		quant.FlagNoMembers, weak, "no members",
		"The community has no members",
		"Add members, or stop tracking the community",
	},
	{
		quant.FlagCutShort, weak, "cut short",
		"More people are within reach of this ego network than its limit allows",
		"Raise members_max, or ask for fewer hops",
	},
	{
		quant.FlagShift, information, "two methods differ",
		"Two ways to correct the classifier differ here by more than their errors. " +
			"The interval holds both",
		"Label some members if the number matters",
	},
	{
		quant.FlagAuditReach, information, "drawn labels not used",
		"The randomly drawn labels no longer stand for the members, and are not used",
		"Draw members again",
	},
	{
		quant.FlagNewPosterior, information, "correction renewed",
		"The correction of the classifier was learned again. A part of this change " +
			"may come from that",
		"Nothing",
	},
	{
		quant.FlagBelowFloor, information, "too small to publish",
		"The community has fewer members than the privacy floor",
		"Nothing, or lower privacy.min_members",
	},
}

// flagInfo explains one flag: to a reader first, and with the exact words of the method.
type flagInfo struct {
	Name     string   `json:"name"`
	Severity Severity `json:"severity"`
	Title    string   `json:"title"`
	Meaning  string   `json:"meaning"`
	Action   string   `json:"action"`
	Exactly  string   `json:"exactly"` // explanation in terms of the method
}

// flagInfos returns every flag, the gravest first. A flag without reader's words is weak.
func flagInfos() []flagInfo {
	docs := map[string]quant.FlagDoc{}
	for _, d := range quant.FlagDocs() {
		docs[d.Name] = d
	}
	var out []flagInfo
	for _, f := range readersFlags {
		d, known := docs[f.name]
		if !known {
			continue
		}
		out = append(out, flagInfo{f.name, f.severity, f.title, f.meaning, f.action, d.Meaning})
		delete(docs, f.name)
	}
	for _, d := range quant.FlagDocs() {
		if _, left := docs[d.Name]; left {
			out = append(out, flagInfo{d.Name, weak, d.Name, d.Meaning, d.Action, d.Meaning})
		}
	}
	return out
}
