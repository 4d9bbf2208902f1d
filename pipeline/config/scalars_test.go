package config

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gqlstream/internal/testfile"
)

// Values that YAML reads in a way that nobody means are refused with their place.
func TestValuesOfUnexpectedTypes(t *testing.T) {
	for text, want := range map[string]string{
		"communities: [{name: 007}]":                         "[1:22] 007 is the number 7 here",
		"communities: [{name: a, where: {zip: 01234}}]":      "01234 is the number 668 here",
		"communities: [{name: a, where: {zip: 0x10}}]":       "0x10 is the number 16 here",
		"communities: [{name: 1.10}]":                        "1.10 is text here",
		"state: ~/gql":                                       "~ is no directory here",
		"state: ~ann/gql":                                    "~ann is no directory here",
		"state: $HOME/gql":                                   "$HOME is no directory here",
		"state: ${HOME}/gql":                                 "${HOME} is no directory here",
		"state: '%APPDATA%/gql'":                             "%APPDATA% is no directory here",
		"communities: [{name: a, where: {zip: '01234'}}]":    "",
		"communities: [{name: 7, where: {zip: -0.5}}]":       "",
		"communities: [{name: a, where: {zip: 1e3}}]":        "",
		"communities: [{name: a, where: {conv: 1_000_000}}]": "",
	} {
		path := filepath.Join(t.TempDir(), "c.yaml")
		testfile.Write(t, path, text)
		_, err := Load(path)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// Aliases of aliases are refused before they take all memory; a reasonable number of them
// is read.
func TestAliasesStandForABoundedNumberOfValues(t *testing.T) {
	text := "classes: &a0 [a, b, c, d, e, f, g, h, i, j]\n"
	for i := 1; i < 9; i++ {
		alias := fmt.Sprintf("*a%d", i-1)
		text += fmt.Sprintf(
			"k%d: &a%d [%s]\n", i, i, strings.Join(slices.Repeat([]string{alias}, 10), ", "),
		)
	}
	path := filepath.Join(t.TempDir(), "c.yaml")
	for content, want := range map[string]string{
		text: "anchors stand for more than",
		"classes: &c [left, right]\nestimates: [{name: a, method: auto}]\n": "",
	} {
		testfile.Write(t, path, content)
		_, err := Load(path)
		if want == "" && err != nil && strings.Contains(err.Error(), "anchors") ||
			want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%.40q: %v, want %q", content, err, want)
		}
	}
}
