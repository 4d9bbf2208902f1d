package files

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"gqlstream/ingest/event"
)

// Summary describes, in lines, the files read so far: each file with its columns, and how the files
// match.
func (s *Source) Summary() (lines []string) {
	for _, in := range s.inputs {
		lines = append(lines, in.summary())
	}
	v := s.survey
	if edges, again, other := v.edges.totals(); edges > 0 {
		vertices, _ := v.meets(hasEdge, hasEdge)
		line := fmt.Sprintf("%s edges between %s vertices",
			v.edges.count(edges), v.vertices.count(vertices))
		if _, both := v.meets(hasEdge, hasPrediction); both > 0 {
			line += fmt.Sprintf(", %s of them with a prediction", v.vertices.count(both))
		}
		lines = append(lines, line+v.edges.repeats(again, other, s.edgesAgain()))
	}
	if labels, again, other := v.labels.totals(); labels > 0 {
		line := fmt.Sprintf("%s labels", v.labels.count(labels))
		by := slices.DeleteFunc([]string{s.classCounts(), v.unreadText(hasLabel)},
			func(text string) bool { return text == "" })
		if len(by) > 0 {
			line += " (" + strings.Join(by, "; ") + ")"
		}
		lines = append(lines,
			line+s.meeting(hasLabel)+v.labels.repeats(again, other, "the last class stands"))
	}
	if predictions, again, other := v.predicts.totals(); predictions > 0 {
		line := fmt.Sprintf("%s predictions", v.predicts.count(predictions))
		if unread := v.unreadText(hasPrediction); unread != "" {
			line += " (" + unread + ")"
		}
		lines = append(lines, line+s.meeting(hasPrediction)+
			v.predicts.repeats(again, other, "the last one stands"))
	}
	if v.posts > 0 {
		line := grouped(v.posts) + " posts"
		if unread := v.unreadText(isAuthor); unread != "" {
			line += " (" + unread + ")"
		}
		lines = append(lines, fmt.Sprintf("%s by %s authors, %s answers and %s reposts",
			line, v.vertices.count(v.authors()), grouped(v.answers), grouped(v.reposts)))
	}
	if members, again, other := v.members.totals(); members > 0 {
		line := fmt.Sprintf("%s memberships in %s communities",
			v.members.count(members), grouped(len(v.communities)))
		lines = append(lines, line+s.meeting(isMember)+
			v.members.repeats(again, other, "the last multiplicity stands"))
	}
	if all, again, other := v.attributes.totals(); again+other > 0 {
		lines = append(lines, fmt.Sprintf("%s attributes of vertices",
			v.attributes.count(all))+v.attributes.repeats(again, other, "the last value stands"))
	}
	return lines
}

func (s *Source) edgesAgain() string {
	if s.sums != nil {
		return "their weights add up"
	}
	return "the last weight stands; --edges-sum adds them up"
}

// summary describes the rows read of a file.
func (s *fileStream) summary() string {
	line := fmt.Sprintf("%s: %s rows", s.tally.Path, grouped(s.tally.Rows))
	if t, ok := s.table.(*csvTable); ok && t.skipped > 0 {
		line += fmt.Sprintf(" after %d lines of comments", t.skipped)
	}
	if s.columns == nil {
		return line
	}
	var columns []string
	for slot, known := range s.columns.known {
		if !s.columns.has(slot) {
			continue
		}
		column := known.Names[0]
		if name := s.columns.names[slot]; name != column {
			column += " from " + name
		}
		for _, t := range s.columns.taken {
			if t.slot == slot && len(t.also) > 0 {
				column += " and " + strings.Join(t.also, " and ")
			}
			if t.slot == slot && len(t.others) > 0 {
				column += " (not " + strings.Join(t.others, ", ") + ")"
			}
		}
		columns = append(columns, column)
	}
	columns = append(columns, s.columns.further()...)
	line += ": " + strings.Join(columns, ", ")
	if t := s.tally; t.Blank > 0 {
		line += fmt.Sprintf("; %s rows without a label are ignored", grouped(t.Blank))
	}
	if n := s.tally.BlankAttributes; n > 0 {
		line += fmt.Sprintf("; %s blank attributes are ignored", grouped(n))
	}
	return line
}

// furtherShown bounds the columns of probabilities or attributes in a summary.
const furtherShown = 6

// further returns the names of the columns of probabilities or attributes.
func (c *columns) further() (names []string) {
	for _, name := range c.names[c.base():] {
		if name != "" {
			names = append(names, name)
		}
	}
	if more := len(names) - furtherShown; more > 0 {
		names = append(names[:furtherShown], fmt.Sprintf("and %d more", more))
	}
	return names
}

// count formats a number of elements; it is an estimate if the sample does not have all.
func (s *sample) count(n int) string {
	if s.shift > 0 {
		return "about " + grouped(n)
	}
	return grouped(n)
}

// repeats describes how many rows repeated or contradicted an earlier row.
func (s *sample) repeats(again, other int, stands string) string {
	text := ""
	if again > 0 {
		text += fmt.Sprintf("; %s rows repeat one", s.count(again))
	}
	if other > 0 {
		text += fmt.Sprintf("; %s rows changed one: %s", s.count(other), stands)
	}
	return text
}

// meeting describes how many vertices with a property also have an edge or a prediction, if the
// files have any.
func (s *Source) meeting(has uint64) string {
	text := ""
	for _, other := range s.partners(has) {
		_, both := s.survey.meets(has, other.has)
		text += fmt.Sprintf("%s %s of vertices with %s",
			map[bool]string{true: ":", false: ","}[text == ""], s.survey.vertices.count(both),
			other.name)
	}
	return text
}

// partner is a property that the vertices of a file should have as well.
type partner struct {
	has  uint64
	name string
}

// partners returns the properties to compare vertices of one property with.
func (s *Source) partners(has uint64) (list []partner) {
	if n, _, _ := s.survey.edges.totals(); n > 0 {
		list = append(list, partner{hasEdge, "an edge"})
	}
	if n, _, _ := s.survey.predicts.totals(); n+s.survey.posts > 0 && has != hasPrediction {
		list = append(list, partner{hasPrediction, "a prediction"})
	}
	return list
}

// classesShown bounds the classes in a summary.
const classesShown = 12

// classCounts lists the number of labels of each class.
func (s *Source) classCounts() string {
	var parts []string
	for k, n := range s.survey.byClass(s.config.Classes.K()) {
		if k == classesShown {
			return strings.Join(append(parts, "..."), ", ")
		}
		parts = append(parts, s.config.Classes.Name(event.Class(k))+" "+s.survey.labels.count(n))
	}
	return strings.Join(parts, ", ")
}

// Warnings lists values of the files that may have another meaning than the user thinks.
func (s *Source) Warnings() (all []string) {
	for _, in := range s.inputs {
		all = append(all, in.warnings(s.survey)...)
	}
	for _, of := range []partner{
		{hasLabel, "labels"},
		{hasPrediction, "predictions"},
		{isMember, "members"},
		{hasRow, "attributes"},
	} {
		all = append(all, s.strangers(of)...)
	}
	all = append(all, s.survey.exceptionWarning()...)
	all = append(all, s.survey.variantWarning()...)
	all = append(all, s.contradictions(event.KindVertex, &s.survey.attributes, "value")...)
	all = append(all, s.contradictions(event.KindLabel, &s.survey.labels, "class")...)
	all = append(all, s.contradictions(event.KindPrediction, &s.survey.predicts, "one")...)
	if v := s.survey; v.postNames > 0 && 2*v.postNames > v.answers+v.reposts {
		all = append(all, fmt.Sprintf("%s of %s answers and reposts name a post and no author: "+
			"--map reply_to=COLUMN with a column of authors, or --map reply_to= for none",
			grouped(v.postNames), grouped(v.answers+v.reposts)))
	}
	if s.survey.digits.rounded() {
		all = append(all, fmt.Sprintf(
			"all %s ids of more than 15 digits look rounded, as by a spreadsheet or a "+
				"float column: export them as text, or different vertices are one",
			grouped(s.survey.digits.large)))
	}
	for _, name := range slices.Sorted(maps.Keys(s.survey.doubtful)) {
		all = append(all, fmt.Sprintf(
			"%s rows of edges or posts name the vertex %q: if it stands for nobody, leave these "+
				"rows out; otherwise it connects them all as a hub",
			grouped(s.survey.doubtful[name]), name))
	}
	if d := s.survey.dates; d.count > 0 {
		all = append(all, fmt.Sprintf("%s ids of edges or posts look like dates, such as %q: a "+
			"spreadsheet may have changed them", grouped(d.count), d.first))
	}
	all = append(all, s.survey.hubWarnings()...)
	return append(all, s.guesses()...)
}

// strangers warns if at most half of the vertices of a file have edges or predictions. Labels need
// both; members and vertices with attributes need one.
func (s *Source) strangers(of partner) (all []string) {
	fewest, most := "", ""
	for _, other := range s.partners(of.has) {
		total, both := s.survey.meets(of.has, other.has)
		if total == 0 || 2*both > total {
			most = other.name
			continue
		}
		fewest = fmt.Sprintf(
			"%s of %s vertices with %s have %s: are the ids of the files the same?",
			grouped(both), grouped(total), of.name, other.name)
		if _, meet := s.survey.variants(of.has, other.has); meet > both {
			fewest += fmt.Sprintf(" %s would, without regard to capitals, quotes, a leading @ or "+
				"zeros, and other code points of the same letters", grouped(meet))
		}
		if of.has&(hasLabel|hasPrediction) != 0 {
			all = append(all, fewest)
		}
	}
	if of.has&(hasLabel|hasPrediction) == 0 && fewest != "" && most == "" {
		all = append(all, fewest)
	}
	return all
}

// contradictedShare is the least share of contradicted elements that leads to a warning: one in so
// many.
const contradictedShare = 20

// contradictions warns if files without times contradict themselves: the order of their rows
// decides then.
func (s *Source) contradictions(kind event.Kind, of *sample, what string) []string {
	things, _, other := of.totals()
	for _, in := range s.inputs {
		if in.columns == nil || in.input.Kind == kind && in.columns.has(in.columns.slot("time")) {
			return nil
		}
	}
	if other == 0 || other*contradictedShare < things {
		return nil
	}
	rows, said := "rows", kind.String()
	if kind == event.KindVertex {
		rows, said = "values", "attribute"
	}
	return []string{fmt.Sprintf("%s %s contradict an earlier %s of the same vertex: the last %s "+
		"stands; if it changed, give a column of times", of.count(other), rows, said, what)}
}

// guesses describes how times were read.
func (s *Source) guesses() (all []string) {
	g := s.decoder.Guesses()
	if g.Scaled > 0 {
		all = append(all,
			fmt.Sprintf("%s times are too large for Unix seconds, and were read as milliseconds "+
				"or finer units by their size, %s", grouped(g.Scaled), g.ScaledFirst))
	}
	if g.Small > 0 {
		all = append(all, fmt.Sprintf("%s times are numbers that were read as seconds since 1970, "+
			"%s: if they are dates, years or days, write them as 2024-05-01T12:00:00Z",
			grouped(g.Small), g.SmallFirst))
	}
	if g.Assumed > 0 {
		all = append(all, fmt.Sprintf("%s timestamps without a time zone were read as UTC; "+
			"--timezone names another", grouped(g.Assumed)))
	}
	return all
}

// warnings lists possible mistakes in a file.
func (s *fileStream) warnings(v *survey) (all []string) {
	path := s.tally.Path
	if s.tally.Rows == 0 {
		all = append(all, path+" has no rows")
	}
	if t, ok := s.table.(*recordTable); ok && t.endless {
		all = append(all, path+": the Arrow stream has no mark of its end: all of its batches "+
			"were read, but the writer may have been stopped before it wrote the rest")
	}
	if n := s.tally.Names; n > 0 {
		all = append(all,
			fmt.Sprintf("%s: %s rows are names of columns: left out", path, grouped(n)))
	}
	if n := s.tally.MinusOne; n > 0 {
		all = append(all,
			fmt.Sprintf("%s: %s labels are -1: read as none; if it is a class, name all with "+
				"--classes=-1,...", path, grouped(n)))
	}
	if n := s.tally.Rounded; n > 0 {
		all = append(all, fmt.Sprintf("%s: %s attributes are floats beyond 2^53: ids have lost "+
			"digits there: export them as text, or different ids are equal", path, grouped(n)))
	}
	if s.columns == nil {
		return all
	}
	all = append(all, s.footerWarning()...)
	if len(s.columns.ignored) > 0 {
		all = append(all, path+": ignored columns "+strings.Join(s.columns.ignored, ", "))
	}
	if missing := s.columns.unfilled(); len(missing) > 0 && s.tally.Rows > 0 {
		all = append(all, fmt.Sprintf("%s: %v", path,
			s.columns.noColumns(missing, s.columns.ignored)))
	} else if s.columns.lacksProbabilities() && s.tally.Rows > 0 {
		all = append(all,
			fmt.Sprintf("%s: %v", path, s.columns.noProbabilities(s.columns.ignored)))
	}
	if s.columns.typed {
		return all
	}
	for slot, name := range s.columns.names[:s.columns.base()] {
		key := keyOf(event.ParseID(name))
		what := s.columns.known[slot].Names[0]
		if name == "" || !slices.Contains([]string{"src", "dst", "vertex", "author"}, what) {
			continue
		}
		if _, is := v.vertices.of[key]; is {
			all = append(all, fmt.Sprintf(
				"%s: the column %q is called like a vertex: if line 1 is data, give --columns",
				path, name))
		}
	}
	return all
}

// grouped formats a number with commas between groups of three digits.
func grouped(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
