package ingest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"gqlstream/ingest/event"
)

// The slots of a row by kind. The time comes first in all of them, so that code
// which only orders rows need not know the kind.
const (
	timeSlot   = 0
	vertexSlot = 1 // of all kinds but edges

	edgeSrcSlot    = 1
	edgeDstSlot    = 2
	edgeWeightSlot = 3
	edgeOpSlot     = 4
	edgeTTLSlot    = 5

	labelClassSlot = 2
	labelRoleSlot  = 3
	labelTTLSlot   = 4

	predictionClassSlot   = 2
	predictionVersionSlot = 3
	predictionListSlot    = 4 // probabilities as a list
	predictionTTLSlot     = 5

	memberCommunitySlot    = 2
	memberMultiplicitySlot = 3
	memberOpSlot           = 4

	vertexEraseSlot      = 2
	vertexAttributesSlot = 3 // attributes as a JSON object
)

// fileColumn is a column that files of a kind may have; the first name is ours,
// the rest is read as well.
type fileColumn struct {
	names    []string
	required bool
}

// fileColumns holds the columns of each kind by slot. Predictions also have p0,
// p1, ... and vertices any other column, from the next slot on.
var fileColumns = [event.Kinds][]fileColumn{
	event.KindEdge: {
		{[]string{"time", "ts"}, false},
		{[]string{"src"}, true},
		{[]string{"dst"}, true},
		{[]string{"weight"}, false},
		{[]string{"op"}, false},
		{[]string{"ttl"}, false},
	},
	event.KindLabel: {
		{[]string{"time", "ts"}, false},
		{[]string{"vertex", "id"}, true},
		{[]string{"label", "class"}, true},
		{[]string{"role"}, false},
		{[]string{"ttl"}, false},
	},
	event.KindPrediction: {
		{[]string{"time", "ts"}, false},
		{[]string{"vertex", "id"}, true},
		{[]string{"class"}, false},
		{[]string{"version", "model", "model_version"}, false},
		{[]string{"probabilities", "p"}, false},
		{[]string{"ttl"}, false},
	},
	event.KindMember: {
		{[]string{"time", "ts"}, false},
		{[]string{"vertex", "id"}, true},
		{[]string{"community"}, true},
		{[]string{"multiplicity", "weight"}, false},
		{[]string{"op"}, false},
	},
	event.KindVertex: {
		{[]string{"time", "ts"}, false},
		{[]string{"vertex", "id"}, true},
		{[]string{"erase"}, false},
		{[]string{"attributes"}, false},
	},
}

// Bounds of what one file may name.
const (
	fileSlotsMax   = 16 + event.ClassesMax // slots of a row
	fileNamesMax   = 1 << 16               // names remembered
	ignoredSlot    = -1
	ignoredNameMax = 32 // columns that a warning lists
)

// columns says which slot each column of one file fills.
type columns struct {
	kind     event.Kind
	rename   map[string]string // the file's name: ours
	slots    map[string]int    // by the file's name
	names    []string          // by slot, of the file; "" when the file has no such column
	header   bool              // the names were known before the first row
	untyped  bool              // all values are text
	highest  int               // 1 + the highest k of a column p<k>
	ignored  []string
	overflow bool // more ignored columns than are listed
}

func newColumns(kind event.Kind, rename map[string]string) *columns {
	return &columns{
		kind: kind, rename: rename, slots: map[string]int{},
		names: make([]string, len(fileColumns[kind])),
	}
}

// setHeader takes the names of all columns of a file and returns their slots.
// Where two columns fill one slot the renamed one wins, then our own name.
func (c *columns) setHeader(names []string) ([]int, error) {
	c.header = true
	slots := make([]int, len(names))
	owner := map[int]int{} // slot: the column that fills it
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			return nil, fmt.Errorf("two columns are named %q", name)
		}
		slots[i] = c.find(name)
		before, taken := owner[slots[i]]
		if slots[i] == ignoredSlot || !taken {
			owner[slots[i]] = i
			continue
		}
		loser := i
		if c.rank(names[i], slots[i]) < c.rank(names[before], slots[i]) {
			owner[slots[i]], loser = i, before
		}
		c.names[slots[i]] = names[owner[slots[i]]]
		slots[loser] = ignoredSlot
		c.ignore(names[loser])
	}
	return slots, c.check(names)
}

// rank orders the names of one slot: lower is stronger.
func (c *columns) rank(name string, slot int) int {
	if _, ok := c.rename[name]; ok {
		return -1
	}
	if slot < len(fileColumns[c.kind]) {
		return slices.Index(fileColumns[c.kind][slot].names, name)
	}
	return 0
}

// check refuses a header that lacks what its kind cannot do without.
func (c *columns) check(names []string) error {
	var missing []string
	for slot, column := range fileColumns[c.kind] {
		if column.required && c.names[slot] == "" {
			missing = append(missing, strconv.Quote(column.names[0]))
		}
	}
	if c.kind == event.KindPrediction && len(missing) == 0 {
		if c.names[predictionClassSlot] == "" && c.names[predictionListSlot] == "" && c.highest == 0 {
			missing = append(missing, `"p0", "p1", ... or "class"`)
		}
		for k := range c.highest {
			if c.names[c.base()+k] == "" {
				return fmt.Errorf("column p%d is missing: probability columns are p0 to p%d", k, c.highest-1)
			}
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("no column %s for %v rows: the file has %s; rename with --map %s=COLUMN",
			strings.Join(missing, ", "), c.kind, strings.Join(names, ", "), strings.Trim(missing[0], `"`))
	}
	return nil
}

// base is the first slot that is not in fileColumns.
func (c *columns) base() int { return len(fileColumns[c.kind]) }

// find returns the slot of a column by the file's name for it.
func (c *columns) find(name string) int {
	if slot, ok := c.slots[name]; ok {
		return slot
	}
	slot := c.resolve(name)
	if slot == ignoredSlot {
		c.ignore(name)
	}
	if len(c.slots) < fileNamesMax {
		name = strings.Clone(name)
		c.slots[name] = slot
		if slot >= 0 && c.names[slot] == "" {
			c.names[slot] = name
		}
	}
	return slot
}

func (c *columns) resolve(name string) int {
	ours := c.ours(name)
	for slot, column := range fileColumns[c.kind] {
		if slices.Contains(column.names, ours) {
			return slot
		}
	}
	switch c.kind {
	case event.KindPrediction:
		if k, ok := probabilityColumn(ours); ok {
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

// ours is our name of a column that the file calls by name.
func (c *columns) ours(name string) string {
	if to, ok := c.rename[name]; ok {
		return to
	}
	return name
}

func (c *columns) grow(slot int) int {
	for len(c.names) <= slot {
		c.names = append(c.names, "")
	}
	return slot
}

func (c *columns) ignore(name string) {
	if len(c.ignored) == ignoredNameMax {
		c.overflow = true
		return
	}
	if !slices.Contains(c.ignored, name) {
		c.ignored = append(c.ignored, strings.Clone(name))
	}
}

// has reports whether the file has, as far as is known, a column for a slot.
func (c *columns) has(slot int) bool { return slot < len(c.names) && c.names[slot] != "" }

// slotName is the file's name of a slot, or ours when it has none.
func (c *columns) slotName(slot int) string {
	if c.has(slot) {
		return c.names[slot]
	}
	if slot < c.base() {
		return fileColumns[c.kind][slot].names[0]
	}
	return "p" + strconv.Itoa(slot-c.base())
}

// warning says which columns are not read, or is empty.
func (c *columns) warning() string {
	if len(c.ignored) == 0 {
		return ""
	}
	more := ""
	if c.overflow {
		more = " and more"
	}
	return "ignored columns " + strings.Join(c.ignored, ", ") + more
}

// probabilityColumn reads the k of a column name p<k>.
func probabilityColumn(name string) (int, bool) {
	digits, ok := strings.CutPrefix(name, "p")
	if !ok || len(digits) == 0 || len(digits) > 4 || (digits[0] == '0' && len(digits) > 1) {
		return 0, false
	}
	k, err := strconv.ParseUint(digits, 10, 16)
	return int(k), err == nil && k < event.ClassesMax
}

// checkRename refuses a renaming to a column that no kind has.
func checkRename(rename map[string]string, kinds []event.Kind) error {
	for _, from := range slices.SortedFunc(maps.Keys(rename), cmp.Compare[string]) {
		to := rename[from]
		_, known := probabilityColumn(to)
		for _, kind := range kinds {
			for _, column := range fileColumns[kind] {
				known = known || slices.Contains(column.names, to)
			}
			known = known || kind == event.KindVertex
		}
		if !known {
			return fmt.Errorf("ingest: column %q is renamed to %q, which none of the files has", from, to)
		}
	}
	return nil
}
