package wire

import "testing"

// An id that ask marked, so that a spreadsheet does not take it for a formula, must be read as it
// was.
func TestAMarkedIDIsReadWithoutItsMark(t *testing.T) {
	for text, want := range map[string]string{
		"'@alice": "@alice", "'=1+1": "=1+1", "'+49": "+49", "'-x": "-x", "'quoted": "'quoted",
		"'": "'",
	} {
		if id, problem := fileID(text, true); problem != nil || id.String() != want {
			t.Errorf("%q was read as %q, %v", text, id.String(), problem)
		}
	}
}
