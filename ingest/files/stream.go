package files

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"gqlstream/ingest/event"
	"gqlstream/ingest/wire"
)

// fileTable is a file as a table of rows.
type fileTable interface {
	// next reads the next row. It returns io.EOF after the last, an *event.Problem if this row
	// cannot be read but later ones can, and any other error if the file cannot be read further.
	next(row *fileRow) error
	// text returns the last row as it is in the file.
	text() []byte
	// place returns the line of the last row, or its number in files without lines.
	place() int64
}

// fileRow is one row of a table: its cells by slot (see columns). They are valid until
// the next row.
type fileRow struct {
	cells []wire.Cell
	list  []float64 // backing of lists
}

// reset makes n cells, all absent.
func (r *fileRow) reset(n int) {
	if cap(r.cells) < n {
		r.cells = make([]wire.Cell, n, 2*n)
	}
	r.cells = r.cells[:n]
	clear(r.cells)
	r.list = r.list[:0]
}

// aheadRows is how many rows of a file are read ahead.
const aheadRows = 1024

// fileEntry is one row that was read ahead.
type fileEntry struct {
	key   event.Time // orders the log
	kind  event.Kind
	index int32 // in the batch's slice of its kind; refusals at -1, -2, ...
	place int64 // in the file
}

// fileStream is one file on its way into the log: the rows of a table, or the lines of a log. Some
// of them are read ahead, or all.
type fileStream struct {
	input    Input
	file     *openedFile
	columns  *columns // nil for a log
	table    fileTable
	decoder  *wire.Decoder
	defaults wire.RowDefaults
	row      fileRow

	words    bool // null words are text
	ahead    event.Batch
	entries  []fileEntry
	next     int        // of entries
	last     event.Time // key of the last entry that was read
	unsorted bool       // a row had an earlier time than the row before
	ended    bool       // the last row was read; its cells are in row
	footer   footer
	tally    Tally
}

// openStream opens one file. The classes may be unknown (zero) if only the cells of a table are
// read.
func openStream(input Input, config *Config, decoder *wire.Decoder) (*fileStream, error) {
	file, err := openFile(input.Path)
	if err != nil {
		return nil, err
	}
	s := &fileStream{
		input:   input,
		file:    file,
		decoder: decoder,
		last:    math.MinInt64,
		tally:   Tally{Path: input.Path},
	}
	if input.Log {
		// kind of lines that name none
		s.input.Kind, s.table = event.KindControl, newJSONTable(file, nil)
		return s, nil
	}
	s.columns = newColumns(input.Kind, config.Columns, config.Classes.Names)
	s.defaults = wire.RowDefaults{
		Kind:    input.Kind,
		Untyped: file.format <= textFile,
		Version: config.Version,
	}
	s.words, s.columns.typed = config.Words, file.format > textFile
	switch file.format {
	case csvFile, tsvFile, textFile:
		s.table, err = newCSVTable(file, s.columns, headerOf(config.Header, input.Kind))
	case ndjsonFile, jsonFile:
		s.table, err = newJSONDocument(file, input.Path, s.columns)
	case parquetFile:
		s.table, err = newParquetTable(file, s.columns)
	case arrowFile:
		s.table, err = newArrowTable(file, s.columns)
	}
	if n, k := s.columns.highest, config.Classes.K(); err == nil && s.columns.header && n > 0 &&
		k > 0 &&
		n != k {
		err = fmt.Errorf("probability columns p0 to p%d for %d classes, want %d of them", n-1, k, k)
	}
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("%s: %w", input.Path, err)
	}
	return s, nil
}

// mayHaveTimes reports whether the file is a table with a column of times, or with columns that are
// unknown before its rows.
func (s *fileStream) mayHaveTimes() bool {
	return !s.input.Log && (!s.columns.header || s.columns.has(s.columns.slot("time")))
}

func (s *fileStream) head() *fileEntry { return &s.entries[s.next] }

// fill reads at most n rows ahead. It returns io.EOF when there is nothing more.
func (s *fileStream) fill(n int) error {
	s.ahead.Reset()
	s.entries, s.next = s.entries[:0], 0
	for len(s.entries) < n {
		err := s.read()
		if err == io.EOF && len(s.entries) > 0 {
			break
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// read reads one row ahead: its event, or its refusal. A refused row keeps the time of the row
// before, and the lines of a log stay in their order. It returns io.EOF after the last row.
func (s *fileStream) read() error {
	e := fileEntry{key: s.last, kind: s.input.Kind}
	t := event.Time(0)
	slot := wire.NoColumn
	err := s.nextRow()
	e.place = s.table.place()
	switch {
	case err == errNamesAgain:
		s.leaveOut(errNamesAgain)
		return nil
	case err != nil:
	case s.input.Log:
		e.kind, t, err = s.decodeLine(s.table.(*jsonTable), &s.ahead)
	default:
		var p *event.Problem
		if t, slot, p = s.decoder.DecodeRow(s.defaults, s.row.cells, s.columns.named,
			&s.ahead); p != nil {
			err = p
		}
		if p == wire.Blank || p == wire.MinusOne {
			s.leaveOut(p)
			return nil
		}
		s.countBlanks()
	}
	switch p, refused := err.(*event.Problem); {
	case refused:
		s.refuse(e.kind, slot, p)
		e.index = int32(-len(s.ahead.Refused))
	case err == io.EOF:
		s.ended = true
		return err
	case err != nil:
		return fmt.Errorf("%s: after row %d: %w", s.input.Path, s.table.place(), err)
	default:
		e.index = int32(s.ahead.Count(e.kind) - 1)
		if !s.input.Log {
			s.footer.see(idsOf(&s.ahead, e.kind, int(e.index)), e.place)
		}
		if key := timeKey(t); key > e.key || !s.input.Log {
			s.unsorted = s.unsorted || key < e.key
			e.key = key
		}
	}
	s.last = e.key
	s.entries = append(s.entries, e)
	return nil
}

// leaveOut counts a row without meaning.
func (s *fileStream) leaveOut(p *event.Problem) {
	s.tally.Rows++
	s.tally.LeftOut++
	switch p {
	case wire.MinusOne:
		s.tally.MinusOne++
	case wire.Blank:
		s.tally.Blank++
	case errNamesAgain:
		s.tally.Names++
	}
}

// countBlanks counts the attributes of the row that are empty or have lost digits.
func (s *fileStream) countBlanks() {
	if s.input.Kind != event.KindVertex {
		return
	}
	for slot := s.columns.base(); slot < len(s.row.cells); slot++ {
		c := &s.row.cells[slot]
		if c.Missing() {
			s.tally.BlankAttributes++
		}
		if c.Kind == wire.NumberCell && math.Abs(c.Number) > event.ExactMax &&
			strings.ContainsAny(c.String(), ".eE") {
			s.tally.Rounded++
		}
	}
}

// nextRow reads a row of a table into s.row. Null words become null, and spaces around texts are
// removed.
func (s *fileStream) nextRow() error {
	err := s.table.next(&s.row)
	if err != nil || s.columns == nil {
		return err
	}
	text, _ := s.table.(*csvTable)
	for slot := range s.row.cells {
		c := &s.row.cells[slot]
		if c.Kind != wire.TextCell {
			continue
		}
		attribute := s.columns.isAttribute(slot)
		if attribute && text == nil {
			continue // a typed file has real nulls
		}
		c.Text = wire.TrimText(c.Text)
		if strings.HasPrefix(c.Text, "at://") && s.columns.holdsAddresses(slot) {
			c.Text = wire.AccountOf(c.Text)
		}
		switch {
		case c.Text == "":
			c.Kind = wire.NullCell
		case !s.words && wire.IsNothing(c.Text) && !s.columns.means(slot, c.Text):
			*c = wire.Cell{Kind: wire.NullCell}
		case text != nil && text.commas && !attribute && s.columns.isNumber(slot):
			c.Text = decimalPoint(c.Text)
		}
	}
	return nil
}

// decimalPoint replaces the comma of a number with a decimal comma.
func decimalPoint(text string) string {
	changed := strings.Replace(text, ",", ".", 1)
	if _, err := strconv.ParseFloat(changed, 64); err != nil {
		return text // is refused as it is
	}
	return changed
}

// timeKey orders times: no time comes first.
func timeKey(t event.Time) event.Time {
	if t == 0 {
		return math.MinInt64
	}
	return t
}

// refuse records the refusal of the last row. Its position is the row's place in the file. slot is
// the column with the problem, or negative.
func (s *fileStream) refuse(kind event.Kind, slot int, p *event.Problem) {
	column := ""
	if slot >= 0 {
		column = "column " + s.columns.slotName(slot) + ": "
	}
	advice := ""
	if p.Reason == event.BadWeight && s.columns != nil || p.Reason == event.BadValue &&
		slot >= 0 && kind == event.KindEdge && slot == s.columns.slot("weight") {
		advice = "; --map weight= reads every edge with the weight 1"
	}
	place := s.table.place()
	s.ahead.Refused = append(s.ahead.Refused, event.Refusal{
		Position: event.Position(place), Kind: kind, Reason: p.Reason,
		Detail:   fmt.Sprintf("%s:%d: %s%s%s", s.input.Path, place, column, p.Detail(), advice),
		Original: append([]byte(nil), s.table.text()...),
	})
}

// copyHead appends the head to dst, at a position. It copies referenced memory, which later rows
// reuse.
func (s *fileStream) copyHead(dst *event.Batch, at event.Position) {
	e := s.head()
	if e.index < 0 {
		dst.Refused = append(dst.Refused, s.ahead.Refused[-1-e.index])
		return
	}
	wire.Copy(dst, &s.ahead, e.kind, int(e.index))
	position, _, _ := dst.At(e.kind, dst.Count(e.kind)-1)
	*position = at
}
