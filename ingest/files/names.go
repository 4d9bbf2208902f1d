package files

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"gqlstream/ingest/event"
	"gqlstream/ingest/wire"
)

// chooseAliases matches columns by names that other programs use, for the fields that no column has
// our name of. It ignores renamed columns.
func (c *columns) chooseAliases(names []string) {
	if c.aliased != nil {
		return
	}
	c.aliased = map[string]string{}
	for _, known := range c.known {
		ours := known.Names[0]
		if c.unwanted(ours) || slices.ContainsFunc(names, func(name string) bool {
			return c.ours(name) == ours
		}) {
			continue
		}
		var found []string
		for _, name := range known.Names[1:] {
			if slices.ContainsFunc(names, func(n string) bool { return c.ours(n) == name }) {
				found = append(found, name)
			}
		}
		for _, alias := range known.Aliases {
			for _, name := range names {
				_, renamed := c.rename[name]
				_, used := c.aliased[name]
				if !renamed && !used && wire.PlainName(name) == alias &&
					!slices.Contains(found, name) {
					found = append(found, name)
				}
			}
		}
		if len(found) > 0 && !slices.Contains(known.Names, found[0]) {
			c.aliased[strings.Clone(found[0])] = ours
		}
		if len(found) > 0 {
			c.noteMatch(c.slot(ours), found[0], found[1:])
		}
	}
}

// aliasLate matches a key that earlier rows did not have, for a field that no key of theirs fills.
func (c *columns) aliasLate(name string) {
	if _, renamed := c.rename[name]; renamed || c.aliased == nil || c.aliased[name] != "" {
		return
	}
	for slot, known := range c.known {
		taken := c.names[slot] != "" ||
			slices.Contains(slices.Collect(maps.Values(c.aliased)), known.Names[0])
		if (!taken || c.isAlternative(slot, name)) && !c.unwanted(known.Names[0]) &&
			!slices.Contains(known.Names, name) &&
			slices.Contains(known.Aliases, wire.PlainName(name)) {
			c.aliased[strings.Clone(name)] = known.Names[0]
			return
		}
	}
}

// isAlternative reports whether a column fills a field in rows that lack the column of its first
// rows.
func (c *columns) isAlternative(slot int, name string) bool {
	return wire.IsAlternative(name) && slices.ContainsFunc(c.taken, func(t taken) bool {
		return t.slot == slot && wire.IsAlternative(t.name)
	})
}

// noteAlternative records a column that fills a field in some rows.
func (c *columns) noteAlternative(slot int, name string) {
	for i := range c.taken {
		if t := &c.taken[i]; t.slot == slot && t.name != name && !slices.Contains(t.also, name) {
			t.also = append(t.also, strings.Clone(name))
		}
	}
}

// holdsAddresses reports whether the values of a slot may be addresses of records, of which the
// account is meant: those of posts must be accounts, those of edges only under the names of
// Bluesky's records.
func (c *columns) holdsAddresses(slot int) bool {
	if slot >= c.base() {
		return false
	}
	switch c.known[slot].Names[0] {
	case "reply_to", "repost_of":
		return true
	case "dst":
		return c.has(slot) && c.rename[c.names[slot]] == "" && wire.HasAddresses(c.names[slot])
	}
	return false
}

// complete reports whether the keys of a row fill every required field.
func (c *columns) complete(keys []string) bool {
	for _, known := range c.known {
		if known.Required && !slices.ContainsFunc(keys, func(key string) bool {
			return slices.Contains(known.Names, c.ours(key))
		}) {
			return false
		}
	}
	return true
}

// whole reports whether an object under a key is a value, and not a group of columns: other rows
// have a value there, and it has no alternative, or it is called like a field that no other key
// fills.
func (c *columns) whole(key string) bool {
	if slot, seen := c.slots[key]; seen {
		return slot >= 0 && !wire.IsAlternative(key)
	}
	slot := slices.IndexFunc(c.known, func(k wire.Column) bool {
		return slices.Contains(k.Names, c.ours(key))
	})
	renamed := func(name string) bool { return strings.HasPrefix(name, key+".") }
	filled := func(t taken) bool { return t.slot == slot && t.name != key }
	return slot >= 0 && !slices.ContainsFunc(c.taken, filled) &&
		!slices.ContainsFunc(slices.Collect(maps.Keys(c.rename)), renamed)
}

// unwanted reports whether a renaming says that no column fills a field.
func (c *columns) unwanted(ours string) bool {
	to, ok := c.rename[""]
	return ok && slices.Contains(strings.Split(to, ","), ours)
}

// noteMatch records that a column was matched to a field.
func (c *columns) noteMatch(slot int, name string, others []string) {
	if _, given := c.rename[name]; given {
		return // the user has named it
	}
	if !slices.ContainsFunc(c.taken, func(t taken) bool { return t.slot == slot }) {
		c.taken = append(c.taken, taken{slot: slot, name: strings.Clone(name), others: others})
	}
}

// single reports whether p1 is the only column of probabilities: with two classes, the first class
// has the rest.
func (c *columns) single() bool { return c.highest == 2 && !c.has(c.base()) && !c.called }

// noProbabilities returns the error about predictions without recognised columns, with advice.
func (c *columns) noProbabilities(names []string) error {
	var others []string
	for _, name := range names {
		if slot, known := c.slots[name]; name != "" && (!known || slot < 0) {
			others = append(others, name)
		}
	}
	advice := "rename with --map p0=COLUMN,p1=COLUMN,..., --map p_NAME=COLUMN,... or --map " +
		"class=COLUMN"
	switch {
	case len(others) == 1:
		advice = fmt.Sprintf("if %s is the probability of the second of two classes: --map "+
			"p1=%s; if it is the class: --map class=%s",
			others[0], others[0], others[0])
	case c.given && len(others) > 1 && !c.namesClasses(others):
		maps := make([]string, min(len(c.classes), adviceMax))
		for i := range maps {
			maps[i] = classPrefix + c.classes[i] + "=COLUMN"
		}
		advice = fmt.Sprintf("the classes are %s: --map %s, or give other names of the classes",
			listNames(c.classes), strings.Join(maps, ","))
	case slices.Contains(others, "label"):
		advice = "if label is the predicted class: --map class=label"
	case slices.Contains(others, "prediction"):
		advice = "if prediction is the predicted class: --map class=prediction"
	case len(others) > 1 && len(others) <= adviceMax:
		maps := make([]string, len(others))
		begin := commonPrefix(others)
		for i, name := range others {
			maps[i] = classPrefix + name[begin:] + "=" + name
		}
		advice = "if they are the classes, name them so: --map " + strings.Join(maps, ",")
	}
	if c.kind == event.KindPost {
		advice += "; if there is none, add the classifier's probabilities as columns " +
			"p_NAME, one for each class"
	}
	return columnsError(fmt.Sprintf("no column %s for %v rows: the file has %s; %s",
		noProbabilityColumns, c.kind, listNames(names), advice))
}

// commonPrefix returns the length of the common beginning of names such as prob_left and
// prob_right, up to a separator.
func commonPrefix(names []string) int {
	end := strings.LastIndexAny(names[0], "_.- ") + 1
	for _, name := range names {
		if !strings.HasPrefix(name, names[0][:end]) || len(name) == end {
			return 0
		}
	}
	return end
}

// namesClasses reports whether all of these columns have the name of a class.
func (c *columns) namesClasses(names []string) bool {
	return !slices.ContainsFunc(names, func(name string) bool {
		return !slices.Contains(c.classes, strings.TrimPrefix(name, classPrefix))
	})
}

// adviceMax bounds the columns in an advice.
const adviceMax = 12

// listNames lists the names of columns for a message.
func listNames(names []string) string {
	if more := len(names) - 2*adviceMax; more > 0 {
		names = append(slices.Clone(names[:2*adviceMax]), fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}

// noProbabilityColumns are our names of the columns of predictions, quoted.
const noProbabilityColumns = `"p0", "p1", ... or "class"`

// lacksProbabilities reports whether a file of predictions has no column of them.
func (c *columns) lacksProbabilities() bool {
	return c.kind.Predicts() && c.highest == 0 &&
		!c.has(c.slot("class")) && !c.has(c.slot("probabilities"))
}

// columnsError is the error of a file without required columns.
type columnsError string

func (e columnsError) Error() string { return string(e) }

// withOtherColumns returns the error of the first file that could not be opened. If it lacks
// columns, the errors of all other files that do follow, so that one try names them all.
func (c *Config) withOtherColumns(first error) error {
	lacks := columnsError("")
	if !errors.As(first, &lacks) {
		return first
	}
	errs, unknown := []error{first}, *c
	unknown.Classes = event.ClassSet{}
	for _, input := range c.Inputs {
		if info, err := os.Stat(input.Path); err != nil || !info.Mode().IsRegular() {
			continue // a pipe is read once
		}
		file, err := openStream(input, &unknown, nil)
		if err == nil {
			err = file.file.Close()
		}
		if errors.As(err, &lacks) && err.Error() != first.Error() {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// noColumns returns the error about a file without required columns, or without a line of names.
func (c *columns) noColumns(missing, names []string) error {
	var maps, order []string
	for _, name := range missing {
		maps = append(maps, strings.Trim(name, `"`)+"=COLUMN")
	}
	if c.lacksProbabilities() {
		missing = append(slices.Clone(missing), noProbabilityColumns)
		maps = append(maps, classPrefix+"CLASS=COLUMN")
	}
	for _, known := range c.known {
		if known.Required {
			order = append(order, known.Names[0])
		}
	}
	for len(order) < len(names) && len(order) < columnsShown { // a row has to have as many values
		order = append(order, "")
	}
	advice := "rename with --map " + strings.Join(maps, ",")
	if answers := c.answers(names); answers != "" {
		advice = answers
	} else if !c.typed {
		if len(names) == 1 && len(missing) > 1 {
			advice += "; the line is one value: values are separated by , ; | tabs or spaces"
		}
		if looksLikeData(names) {
			advice = fmt.Sprintf(
				"line 1 looks like data: if the file has no line with names, --columns %s; else ",
				strings.Join(order, ",")) + advice
		} else {
			advice += "; if line 1 is data, --columns " + strings.Join(order, ",")
		}
	}
	return columnsError(fmt.Sprintf("no column %s for %v rows: the file has %s; %s",
		strings.Join(missing, ", "), c.kind, listNames(names), advice))
}

// answers returns advice for posts that are given as edges, or "".
func (c *columns) answers(names []string) string {
	if c.kind != event.KindEdge {
		return ""
	}
	post := newColumns(event.KindPost, nil, nil)
	post.chooseAliases(names)
	column := func(ours string) string {
		for _, name := range names {
			if post.ours(name) == ours || slices.Contains(post.known[post.slot(ours)].Names, name) {
				return name
			}
		}
		return ""
	}
	author, other := column("author"), cmp.Or(column("reply_to"), column("repost_of"))
	if author == "" || other == "" {
		return ""
	}
	return fmt.Sprintf("they look like posts: --posts reads them, if they have the classifier's "+
		"probabilities; as edges without these, --map src=%s,dst=%s --skip-refused leaves out "+
		"the posts that answer nobody", author, other)
}

// columnsShown bounds the columns that the advice about a file without names counts.
const columnsShown = 16

// looksLikeData reports whether the line of names seems to be a row of values.
func looksLikeData(names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		_, err := strconv.ParseFloat(name, 64)
		digits := strings.IndexAny(name, "0123456789")
		return err == nil || digits > 0 && name[digits-1] != 'p' || strings.HasPrefix(name, "@")
	})
}

// fileKinds are the kinds of tables by the flags that name them.
var fileKinds = map[string]event.Kind{
	"edges": event.KindEdge, "labels": event.KindLabel, "predictions": event.KindPrediction,
	"posts": event.KindPost, "members": event.KindMember, "vertices": event.KindVertex,
}

// headerOf returns the configured columns (--columns) for a file without a line of names. With a
// kind they are those for the kind. Without one they are those for the files that have all of them;
// vertices, which may have any columns, need the kind.
func headerOf(given []string, kind event.Kind) []string {
	for _, list := range given {
		of, names, split := strings.Cut(list, "=")
		if split && fileKinds[of] == kind {
			return strings.Split(names, ",")
		}
	}
	for _, list := range given {
		if strings.Contains(list, "=") || kind == event.KindVertex {
			continue
		}
		names := strings.Split(list, ",")
		c := newColumns(kind, nil, nil)
		if _, err := c.setHeader(names); err == nil && len(c.ignored) == 0 {
			return names
		}
	}
	return nil
}
