package tables

import "strings"

// formulaBegins are the characters with which a spreadsheet takes the text of a cell for a formula.
const formulaBegins = "=+-@\t\r"

// Cell returns a text as a cell of a CSV file for people. A text that a spreadsheet would take for
// a formula gets a quotation mark before it, as OWASP advises: whoever names a community must not
// have something computed, or fetched, on the machine of a reader. Numbers are not for Cell.
func Cell(text string) string {
	if text != "" && strings.ContainsRune(formulaBegins, rune(text[0])) {
		return "'" + text
	}
	return text
}
