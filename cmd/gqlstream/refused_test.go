package main

import (
	"strings"
	"testing"

	"gqlstream/internal/testfile"
)

// Commands that answer once must print no answer when rows were refused, unless they
// may be left out; a file refused whole fails always, and self-loops fail nothing. A replay,
// which prints as it reads, fails at its end.
func TestRefusedRowsFailOneShotCommands(t *testing.T) {
	edges := testfile.New(t, "e.csv", "src,dst,weight\n1,2,1\n2,3,1\n3,1,1\n3,3,1\n")
	damaged := testfile.New(t, "d.csv", "src,dst,weight\n1,2,1\n2,3,-1\n3,1,1\n3,4,1\n")
	labels := testfile.New(t, "l.csv", "vertex,label\n1,0\n2,1\n")
	percent := testfile.New(t, "l.csv", "vertex,label\n1,50\n2,60\n")
	predictions := testfile.New(t, "p.csv", "vertex,p0,p1\n1,0.9,0.1\n2,0.2,0.8\n3,0.4,0.6\n")
	for name, c := range map[string]struct {
		edges, labels string
		more          []string
		code          int
		said          string
	}{
		"sound":       {edges, labels, nil, exitFine, "left out: 1 self-loops"},
		"one refused": {damaged, labels, nil, exitFailed, "1 of 9 rows were refused"},
		"one allowed": {
			damaged, labels,
			[]string{"--max-refused", "1"},
			exitFine,
			"refused: 1 rows, bad-weight",
		},
		"none allowed": {
			damaged, labels,
			[]string{"--max-refused", "0"},
			exitFailed,
			"1 of 9 rows were refused",
		},
		"a share allowed": {
			damaged, labels,
			[]string{"--max-refused", "12%"},
			exitFine,
			"refused: 1 rows, bad-weight",
		},
		"a share too small": {
			damaged, labels,
			[]string{"--max-refused", "11%"},
			exitFailed,
			"--skip-refused",
		},
		"all allowed": {
			damaged, labels,
			[]string{"--skip-refused"},
			exitFine,
			"refused: 1 rows, bad-weight",
		},
		"a file whole": {
			edges, percent,
			[]string{"--skip-refused"},
			exitFailed,
			"every row of " + percent + " was refused (2)",
		},
		"a share that is not": {
			damaged, labels,
			[]string{"--max-refused", "1.5"},
			exitUsage,
			"--max-refused",
		},
	} {
		for _, command := range []string{"estimate", "replay"} {
			t.Run(command+" "+name, func(t *testing.T) {
				args := []string{
					command, "--edges", c.edges, "--labels", c.labels, "--predictions", predictions,
					"--everyone", "--classes", "2",
				}
				code, out, said := runCommand(append(args, c.more...)...)
				if code != c.code || !strings.Contains(said, c.said) ||
					(out != "") != (code == exitFine || command == "replay") {
					t.Errorf("exit %d, want %d; %q\n%s%s", code, c.code, c.said, out, said)
				}
			})
		}
	}
}

// Probabilities must not be assigned to classes by alphabetical order. Configured classes
// and columns without class names must lead to a question; columns that name their classes
// must be taken.
func TestClassesAreNotGuessed(t *testing.T) {
	edges := testfile.New(t, "e.csv", "src,dst\n1,2\n2,3\n3,1\n")
	labels := testfile.New(t, "l.csv", "vertex,label\n1,zeta\n2,right\n")
	rows := "\n1,0.9,0.1\n2,0.2,0.8\n3,0.4,0.6\n"
	bare := testfile.New(t, "p.csv", "vertex,p0,p1"+rows)
	named := testfile.New(t, "p.csv", "vertex,p_zeta,p_right"+rows)
	args := []string{
		"estimate",
		"--edges",
		edges,
		"--labels",
		labels,
		"--everyone",
		"--method",
		"pcc",
		"--predictions",
	}
	code, out, said := runCommand(append(args, bare)...)
	if code != exitUsage || out != "" ||
		!strings.Contains(said, "name the columns p_right and so on, or give --classes") {
		t.Errorf("exit %d\n%s%s", code, out, said)
	}
	want, _ := mustRun(t, append(args, bare, "--classes", "zeta,right")...)
	got, _ := mustRun(t, append(args, named)...)
	if got != want || !strings.Contains(got, "zeta") {
		t.Errorf("columns with names:\n%s\nclasses given:\n%s", got, want)
	}
}
