package files

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"gqlstream/ingest/event"
	"gqlstream/ingest/wire"
)

// Bounds on the names of one file.
const (
	fileSlotsMax   = 16 + event.ClassesMax // slots of a row
	fileNamesMax   = 1 << 16               // names remembered
	ignoredSlot    = -1
	ignoredNameMax = 32 // columns that a warning lists
)

// columns assigns each column of one file to the slot of a field.
type columns struct {
	kind    event.Kind
	known   []wire.Column     // columns of the kind; their slots are their indices
	rename  map[string]string // the file's name: ours, of this kind
	slots   map[string]int    // by the file's name
	names   []string          // by slot: the file's name, "" if the file has no such column
	named   []string          // by slot: our name
	header  bool              // the names were known before the first row
	highest int               // 1 + the highest class of a column of probabilities
	// names of the classes: configured, or else from the columns p_NAME
	classes  []string
	given    bool // the names were given
	numbered bool // some column of probabilities is p<k>
	called   bool // some column of probabilities is p_NAME
	ignored  []string

	aliased map[string]string // like rename, for names of other programs
	taken   []taken           // columns matched to a field by a name other than its first
	typed   bool              // every row has the names of its columns
}

// taken is a column that was matched to a field by its name.
type taken struct {
	slot   int
	name   string
	others []string // other columns that could be meant
	also   []string // columns that fill the field in other rows
}

// newColumns returns the columns of a kind; classes are the names of the classes, if they are
// known.
func newColumns(kind event.Kind, rename map[string]string, classes []string) *columns {
	known := wire.Columns(kind)
	return &columns{
		kind: kind, known: known, rename: renamesOf(kind, rename), slots: map[string]int{},
		classes: classes, given: len(classes) > 0,
		names: make([]string, len(known)), named: make([]string, len(known)),
	}
}

// renamesOf returns the renamings of columns to fields of a kind. A column such as user may be the
// source of edges and the vertex of labels.
func renamesOf(kind event.Kind, rename map[string]string) map[string]string {
	out := map[string]string{}
	for theirs, fields := range rename {
		if theirs == "" || fields == "" {
			out[theirs] = fields
		} else if ours := fieldsOf(kind, fields); len(ours) > 0 {
			out[theirs] = ours[0]
		}
	}
	return out
}

// fieldsOf returns those of the fields, which commas separate, that a kind has. A file of vertices
// may have any, so there only a name alone is an attribute.
func fieldsOf(kind event.Kind, fields string) (ours []string) {
	names := strings.Split(fields, ",")
	for _, name := range names {
		c := newColumns(kind, nil, nil)
		slot := c.resolve(name)
		if slot >= 0 && (!c.isAttribute(slot) || len(names) == 1) {
			ours = append(ours, name)
		}
	}
	return ours
}

// setHeader assigns all columns of a file and returns their slots. If several columns fit one slot,
// a renamed one wins, then our own name.
func (c *columns) setHeader(names []string) ([]int, error) {
	c.header = true
	c.chooseAliases(names)
	slots, order := make([]int, len(names)), make([]int, len(names))
	seen := map[string]bool{}
	for i, name := range names {
		if order[i] = i; seen[name] && name != "" {
			return nil, fmt.Errorf("two columns are named %q", name)
		}
		seen[name] = true
	}
	slices.SortStableFunc(order,
		func(i, j int) int { return cmp.Compare(c.rank(names[i]), c.rank(names[j])) })
	for _, i := range order {
		// the index of a data frame, or a separator at the end of the line
		if names[i] == "" || strings.HasPrefix(names[i], "__index_level_") {
			slots[i] = ignoredSlot
			continue
		}
		if slots[i] = c.find(names[i]); slots[i] >= 0 && c.names[slots[i]] != names[i] {
			slots[i] = ignoredSlot
			c.ignore(names[i])
		}
	}
	return slots, c.check(names)
}

// rank orders names that may fill one slot: lower is stronger.
func (c *columns) rank(name string) int {
	if _, ok := c.rename[name]; ok {
		return -1
	}
	for _, column := range c.known {
		if i := slices.Index(column.Names, name); i >= 0 {
			return i
		}
	}
	return 0
}

// errMixedColumns is the error of columns of ambiguous classes.
var errMixedColumns = errors.New(
	"some columns of probabilities are p0, p1, ... and some name their class")

// check refuses a header without a required column of its kind.
func (c *columns) check(names []string) error {
	missing := c.unfilled()
	if c.kind.Predicts() && len(missing) == 0 {
		if c.lacksProbabilities() {
			return c.noProbabilities(names)
		}
		if c.numbered && c.called {
			return errMixedColumns
		}
		for k := range max(c.highest, len(c.classes)) {
			if c.called && !c.has(c.base()+k) {
				return fmt.Errorf(
					"column %s%s is missing: each class has a column, or p1 alone is the second "+
						"of two",
					classPrefix, c.classes[k])
			}
			if k < c.highest && !c.has(c.base()+k) && !c.single() {
				return fmt.Errorf("column p%d is missing: probability columns are p0 to p%d",
					k, c.highest-1)
			}
		}
	}
	if len(missing) > 0 {
		return c.noColumns(missing, names)
	}
	return nil
}

// unfilled returns our names of the required columns that the file lacks, quoted.
func (c *columns) unfilled() (missing []string) {
	for slot, column := range c.known {
		if column.Required && c.names[slot] == "" {
			missing = append(missing, strconv.Quote(column.Names[0]))
		}
	}
	return missing
}

// slot returns the slot of a column of the kind, by our name.
func (c *columns) slot(name string) int {
	return slices.IndexFunc(c.known, func(k wire.Column) bool { return k.Names[0] == name })
}

// base returns the first slot after those of known columns.
func (c *columns) base() int { return len(c.known) }

// find returns the slot of a column by the file's name for it.
func (c *columns) find(name string) int {
	if slot, ok := c.slots[name]; ok {
		return slot
	}
	if !c.header {
		c.aliasLate(name)
	}
	slot := c.resolve(name)
	if slot == ignoredSlot {
		c.ignore(name)
	}
	if slot >= 0 && slot < c.base() && name != c.names[slot] && c.has(slot) &&
		wire.IsAlternative(name) {
		c.noteAlternative(slot, name)
	}
	if slot >= 0 && slot < c.base() && c.names[slot] == "" && name != c.known[slot].Names[0] {
		c.noteMatch(slot, name, nil)
	}
	if len(c.slots) < fileNamesMax {
		name = strings.Clone(name)
		c.slots[name] = slot
		if slot >= 0 && c.names[slot] == "" {
			c.names[slot], c.named[slot] = name, c.ours(name)
		}
	}
	return slot
}

func (c *columns) resolve(name string) int {
	ours := c.ours(name)
	if ours == "" {
		return ignoredSlot // --map weight= says that no column is the weight
	}
	for slot, column := range c.known {
		if slices.Contains(column.Names, ours) {
			return slot
		}
	}
	switch c.kind {
	case event.KindPrediction, event.KindPost:
		if k, ok := c.probability(ours); ok {
			c.highest = max(c.highest, k+1)
			return c.grow(c.base() + k)
		}
	case event.KindVertex:
		if len(c.names) < fileSlotsMax {
			return c.grow(len(c.names))
		}
	}
	return ignoredSlot
}

// probability returns the class of a column of probabilities: k of p<k>, or the class NAME of
// p_NAME. If the classes have no names yet, these columns define them.
func (c *columns) probability(name string) (int, bool) {
	if k, ok := wire.ProbabilityColumn(name); ok && k < event.ClassesMax {
		c.numbered = true
		return k, true
	}
	class, ok := strings.CutPrefix(name, classPrefix)
	if !ok || class == "" || len(c.classes) == event.ClassesMax {
		return 0, false
	}
	c.called = true
	k := slices.Index(c.classes, class)
	if k < 0 && !c.given {
		k = len(c.classes)
		c.classes = append(c.classes, strings.Clone(class))
	}
	return k, k >= 0
}

// ours returns our name for a column of the file.
func (c *columns) ours(name string) string {
	if to, ok := c.rename[name]; ok {
		return to
	}
	return cmp.Or(c.aliased[name], name)
}

// isAttribute reports whether a slot holds an attribute with a column of its own.
func (c *columns) isAttribute(slot int) bool {
	return c.kind == event.KindVertex && slot >= c.base()
}

// isNumber reports whether a slot holds a number.
func (c *columns) isNumber(slot int) bool {
	return slot >= c.base() ||
		slices.Contains([]string{"weight", "multiplicity", "pi"}, c.known[slot].Names[0])
}

// means reports whether a null word, such as "none", is a value in this slot: the name of a class,
// or a weight that is no number and must be refused.
func (c *columns) means(slot int, text string) bool {
	if slot >= c.base() {
		return false
	}
	switch c.known[slot].Names[0] {
	case "label", "class":
		return slices.Contains(c.classes, text)
	case "weight":
		_, err := strconv.ParseFloat(text, 64)
		return err == nil && c.kind == event.KindEdge
	}
	return false
}

func (c *columns) grow(slot int) int {
	for len(c.names) <= slot {
		c.names, c.named = append(c.names, ""), append(c.named, "")
	}
	return slot
}

func (c *columns) ignore(name string) {
	switch n := len(c.ignored); {
	case n > ignoredNameMax || slices.Contains(c.ignored, name):
	case n == ignoredNameMax:
		c.ignored = append(c.ignored, "and more")
	default:
		c.ignored = append(c.ignored, strings.Clone(name))
	}
}

// has reports whether the file has a column for a slot, as far as is known.
func (c *columns) has(slot int) bool { return slot < len(c.names) && c.names[slot] != "" }

// slotName returns the file's name of a slot, or ours if it has none.
func (c *columns) slotName(slot int) string {
	if c.has(slot) {
		return c.names[slot]
	}
	if slot < c.base() {
		return c.known[slot].Names[0]
	}
	return "p" + strconv.Itoa(slot-c.base())
}

// classPrefix begins the names of the columns of probabilities that name their class.
const classPrefix = "p_"

// checkRename refuses a renaming to a column that no kind has, or to two columns of one kind.
func checkRename(rename map[string]string, kinds []event.Kind) error {
	for _, from := range slices.Sorted(maps.Keys(rename)) {
		if from == "" || rename[from] == "" { // fields and columns that are not read
			continue
		}
		for _, to := range strings.Split(rename[from], ",") {
			if !slices.ContainsFunc(kinds,
				func(k event.Kind) bool { return len(fieldsOf(k, to)) > 0 }) {
				return fmt.Errorf("column %q is renamed to %q, which none of the files has",
					from, to)
			}
		}
		for _, kind := range kinds {
			if ours := fieldsOf(kind, rename[from]); len(ours) > 1 {
				return fmt.Errorf("column %q is renamed to %q and %q, which are two columns of "+
					"%v rows", from, ours[0], ours[1], kind)
			}
		}
	}
	return nil
}
