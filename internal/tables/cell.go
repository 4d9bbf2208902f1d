package tables

import "strings"

// formulaBegins are the first characters of cells that a spreadsheet takes for formulas.
const formulaBegins = "=+-@\t\r"

// Cell returns a text as a cell of a CSV file for people. A text that a spreadsheet would take for
// a formula gets a quotation mark before it, as OWASP advises: the name of a community must not
// make the machine of a reader compute or fetch anything. Numbers are not for Cell.
func Cell(text string) string {
	if text != "" && strings.ContainsRune(formulaBegins, rune(text[0])) {
		return "'" + text
	}
	return text
}
