package tables

import "testing"

// A name that a spreadsheet would take for a formula must be a text, and others stay as they are.
func TestACellIsNoFormula(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "berlin": "berlin", "a=b": "a=b", "'x": "'x",
		`=HYPERLINK("http://x")`: `'=HYPERLINK("http://x")`,
		"+1":                     "'+1", "-1": "'-1", "@SUM(A1)": "'@SUM(A1)", "\t=1": "'\t=1",
		"\r=1": "'\r=1",
	} {
		if got := Cell(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}
