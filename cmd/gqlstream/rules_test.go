package main

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"gqlstream/internal/testfile"
	"gqlstream/quant"
)

// ruleFiles are the files of the example of estimate on rules. docs/communities.md has the
// rules themselves.
var ruleFiles = map[string]string{
	"e.csv": "src,dst\nalice,bob\nbob,carol\ncarol,dave\n",
	"l.csv": "vertex,label\nalice,0\nbob,1\ncarol,0\ndave,1\n",
	"p.csv": "vertex,p0,p1\nalice,0.8,0.2\nbob,0.3,0.7\ncarol,0.9,0.1\ndave,0.2,0.8\n",
	"v.csv": "vertex,language,age,posts,days,bot\nalice,de,30,300,10,false\nbob,de,17,5,," +
		"false\ncarol,de,old,90,3,false\ndave,fr,40,90,3,true\n",
}

// rulesExample returns the example in the help of estimate on a file of rules.
func rulesExample(t *testing.T) []string {
	t.Helper()
	help := strings.ReplaceAll((*estimateCmd)(nil).Help(), "\\\n", "")
	for line := range strings.Lines(help) {
		if strings.Contains(line, "gqlstream estimate") && strings.Contains(line, "rules.yaml") {
			return strings.Fields(line)[1:]
		}
	}
	t.Fatal("the help of estimate has no example on a file of rules")
	return nil
}

// The example of the help must run on the rules in the documentation, find the right
// members, and warn of values that the rules cannot compare.
func TestRulesExampleRuns(t *testing.T) {
	page, err := os.ReadFile("../../docs/communities.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rules, _ := strings.Cut(string(page), "```yaml\n")
	rules, _, _ = strings.Cut(rules, "```")
	t.Chdir(t.TempDir())
	for name, text := range ruleFiles {
		testfile.Write(t, name, text)
	}
	testfile.Write(t, "rules.yaml", rules)
	code, out, diagnostics := runCommand(append(rulesExample(t), "--format", "json")...)
	if code != exitFine {
		t.Fatalf("exit %d: %s", code, diagnostics)
	}
	members := map[string]float64{}
	for line := range strings.Lines(out) {
		var e quant.Estimate
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		members[e.Community] = e.Members
	}
	for name, want := range map[string]float64{
		"german adults": 1, "talkative": 2,
		"around alice": 3,
	} {
		if members[name] != want {
			t.Errorf("%s has %g members, want %g", name, members[name], want)
		}
	}
	if !strings.Contains(
		diagnostics,
		`"german adults": the rule found 1 values of another type`,
	) {
		t.Errorf("no warning of carol's age: %s", diagnostics)
	}
}

// Unusable rules must be refused with file, community and place. A network that does not
// fit its definition must be named in a warning.
func TestBadRulesAreRefused(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, text := range ruleFiles {
		testfile.Write(t, name, text)
	}
	for rules, want := range map[string]string{
		"communities:\n  - {name: a, rule: 'age >= and'}": `community "a" has a rule ` +
			`that cannot be used: column 8: unexpected token`,
		"communities:\n  - {name: a, rule: 'len(language) > 1'}": "column 1: there is no " +
			"function len; a rule has attributes",
		"communities:\n  - {name: a, ego: {root: x}}": `community "a" is an ego ` +
			`network of 0 hops, want 1 to 3`,
		"communities:\n  - {name: a, ego: {hops: 1}}": "root must be " +
			"the name of a vertex",
		"communities:\n  - {name: a, ego: {root: x, hopps: 1}}": "hops",
		"communities:\n  - {name: a, everyone: true, rule: 'age > 1'}": "everyone and rule; " +
			"choose one",
		"comunities: []": "communities",
		"":               "no community; give",
		"communities:\n  - {name: a, ego: {root: zoe, hops: 1}}": "no vertex " +
			"is named zoe",
		"communities:\n  - {name: a, rule: 'age > 100'}": "holds for " +
			"no vertex",
		"communities:\n  - {name: a, ego: {root: bob, hops: 2, members_max: 3}}": "1 of its 2",
	} {
		testfile.Write(t, "rules.yaml", rules)
		if _, _, diagnostics := runCommand(rulesExample(t)...); !strings.Contains(
			diagnostics,
			want,
		) {
			t.Errorf("%s\ngave %s\nwant %s", rules, diagnostics, want)
		}
	}
	testfile.Write(
		t,
		"gqlstream.yaml",
		"classes: 2\ncommunities:\n  - {name: a, rule: 'language == \"de\" andd age > 1'}\n",
	)
	code, _, diagnostics := runCommand("check", "gqlstream.yaml")
	if code != exitUsage ||
		!strings.Contains(
			diagnostics,
			`gqlstream.yaml: community "a" has a rule that cannot be used: column 18`,
		) {
		t.Errorf("check: exit %d, %s", code, diagnostics)
	}
	testfile.Write(
		t,
		"gqlstream.yaml",
		"classes: 2\ncommunities:\n  - {name: a, rule: 'age > 1'}\n  - {name: b, ego: {root: 7, "+
			"hops: 2}}\n",
	)
	if code, out, diagnostics := runCommand("check", "gqlstream.yaml"); code != exitFine ||
		!strings.Contains(out, "rule: age > 1") {
		t.Errorf("check: exit %d, %s%s", code, out, diagnostics)
	}
}

// An ego network that reaches fewer hops than it was to must say so in its record.
func TestEgoNetworkThatIsCutShortIsFlagged(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, text := range ruleFiles {
		testfile.Write(t, name, text)
	}
	testfile.Write(
		t,
		"rules.yaml",
		"communities:\n  - {name: cut, ego: {root: bob, hops: 2, members_max: 3}}\n"+
			"  - {name: whole, ego: {root: bob, hops: 2}}\n  - {name: none, ego: {root: zoe, "+
			"hops: 2}}\n",
	)
	_, out, _ := runCommand(append(rulesExample(t), "--format", "json")...)
	n := 0
	for line := range strings.Lines(out) {
		var e quant.Estimate
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		n++
		if got, want := slices.Contains(e.Flags, quant.FlagCutShort),
			e.Community == "cut"; got != want {
			t.Errorf("%s has the flags %v", e.Community, e.Flags)
		}
	}
	if n != 3 {
		t.Errorf("%d estimates: %s", n, out)
	}
}
