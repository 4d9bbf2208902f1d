package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gqlstream/internal/testfile"
)

// tableFlags returns the flags that name the files of the example, some of them replaced by texts.
func tableFlags(t *testing.T, replaced map[string]string) (flags []string) {
	t.Helper()
	for _, name := range []string{"edges", "labels", "predictions", "members"} {
		path := filepath.Join("..", "..", "examples", "data", name+".csv")
		if text, is := replaced[name]; is {
			path = testfile.New(t, name+".csv", text)
		}
		flags = append(flags, "--"+name, path)
	}
	return flags
}

// exampleText returns the text of a file of the example.
func exampleText(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "examples", "data", name+".csv"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Files that say the same in another way must give the same estimate.
func TestEstimatesOfFilesAsPeopleHaveThem(t *testing.T) {
	labels, edges := exampleText(t, "labels"), exampleText(t, "edges")
	shares := regexp.MustCompile(`\d\.\d{3}`)
	as, _ := mustRun(t, append([]string{"estimate"}, tableFlags(t, nil)...)...)
	want := shares.FindAllString(as, -1)
	if len(want) != 3*6 {
		t.Fatalf("%d shares and ends of intervals in\n%s", len(want), as)
	}
	blank := strings.ReplaceAll(strings.ReplaceAll(labels, "left", ""), "right", "")
	for name, test := range map[string]struct {
		replaced map[string]string
		flags    []string
	}{
		"blank again": {replaced: map[string]string{"labels": labels +
			blank[strings.Index(blank, "\n")+1:]}},
		"carriage returns": {replaced: map[string]string{"edges": strings.ReplaceAll(edges, "\n",
			"\r\r\n")}},
		"hard spaces": {replaced: map[string]string{"labels": strings.ReplaceAll(labels, ",",
			"\u00a0,")}},
		"semicolons": {replaced: map[string]string{"edges": strings.ReplaceAll(edges, ",",
			";")}},
		"no names": {
			replaced: map[string]string{"edges": edges[strings.Index(edges, "\n")+1:]},
			flags:    []string{"--columns", "src,dst"},
		},
		"said twice": {replaced: map[string]string{"edges": edges +
			edges[strings.Index(edges, "\n")+1:]}},
		"capitals": {replaced: map[string]string{"edges": strings.Replace(edges, "src,dst",
			"Source,Target", 1)}},
		"stances": {
			replaced: map[string]string{
				"labels": strings.ReplaceAll(strings.ReplaceAll(labels, "left", "-1"), "right",
					"1"),
				"predictions": strings.Replace(exampleText(t, "predictions"), "p_left,p_right",
					"p0,p1", 1),
			},
			flags: []string{"--classes=-1,1"},
		},
	} {
		out, _ := mustRun(
			t,
			append(append([]string{"estimate"}, tableFlags(t, test.replaced)...), test.flags...)...)
		if got := shares.FindAllString(out, -1); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}

// A file of another kind than its name or flag says must be refused or reported, with
// advice.
func TestMislabelledFilesAreReported(t *testing.T) {
	labels, edges := exampleText(t, "labels"), exampleText(t, "edges")
	vertices := "vertex,year,conv\n"
	hub := edges
	strange := "vertex,label\n"
	for i := range 300 {
		vertices += fmt.Sprintf("u%d,%d,123456789012345670%d\n", i, 2012+i%4, i%4)
		hub += fmt.Sprintf("u%d,NaN\n", i)
		strange += fmt.Sprintf("@u%d,left\n@w%d,right\n", i, i)
	}
	attributes := testfile.New(t, "v.csv", vertices)
	for name, test := range map[string]struct {
		replaced map[string]string
		flags    []string
		want     string
	}{
		"said": {nil, nil, "read 70 labels (left 32, right 38): 70 of vertices with an edge"},
		"words for nothing": {
			map[string]string{"edges": hub},
			[]string{"--skip-refused"},
			"refused: 300 rows, missing-field",
		},
		"strangers": {
			map[string]string{"labels": strange},
			nil,
			"warning: 0 of 600 vertices with labels have an edge",
		},
		"no rows": {map[string]string{"edges": "src,dst\n"}, nil, "edges.csv has no rows"},
		"changed": {
			map[string]string{"labels": labels +
				strings.ReplaceAll(labels[strings.Index(labels, "\n")+1:], "left", "right")},
			nil, "32 rows changed one: the last class stands",
		},
		"a slip": {
			nil,
			[]string{"--vertices", attributes, "--community", "b=yaer:2013"},
			`no vertex has yaer == 2013: did you mean "year"?`,
		},
		"another type": {
			nil,
			[]string{"--vertices", attributes, "--community", "b=year:old"},
			"year is a number, such as 2012",
		},
		"stances": {
			map[string]string{"labels": strings.ReplaceAll(strings.ReplaceAll(labels, "left", "-1"),
				"right", "1")},
			nil, "--classes=-1,1",
		},
		"one class": {
			map[string]string{
				"labels":      strings.ReplaceAll(labels, "right", "left"),
				"predictions": "vertex,class\nu1,left\n",
			},
			nil, `"left" alone leaves nothing to estimate`,
		},
	} {
		_, out, diagnostics := runCommand(
			append(append([]string{"estimate"}, tableFlags(t, test.replaced)...), test.flags...)...)
		if !strings.Contains(diagnostics, test.want) {
			t.Errorf("%s: no %q in\n%s%s", name, test.want, out, diagnostics)
		}
	}
	for _, community := range []string{"a=year:2013", "a=conv:1234567890123456701"} {
		out, _ := mustRun(t, append(append([]string{"estimate"}, tableFlags(t, nil)...),
			"--vertices", attributes, "--community", community)...)
		if !strings.Contains(strings.Join(strings.Fields(out), " "), "a auto 75 ") {
			t.Errorf("%s:\n%s", community, out)
		}
	}
	_, checked := mustRun(t, append([]string{"check"}, tableFlags(t, nil)...)...)
	if !strings.Contains(
		checked,
		"read 70 labels (left 32, right 38): 70 of vertices with an edge",
	) {
		t.Errorf("check: %s", checked)
	}
	_, quiet := mustRun(t, append([]string{"estimate", "--quiet"}, tableFlags(t, nil)...)...)
	if quiet != "" {
		t.Errorf("--quiet: %s", quiet)
	}
}
