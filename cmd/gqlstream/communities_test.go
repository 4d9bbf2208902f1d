package main

import (
	"encoding/csv"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gqlstream/internal/testfile"
)

// plantedEdges writes a graph of three clear groups of 60, 40 and 20 vertices and a pair
// apart from them, and returns the path of the file. Vertices are g1-0, g1-1, ...
func plantedEdges(t *testing.T) string {
	t.Helper()
	random := rand.New(rand.NewPCG(1, 1))
	var b strings.Builder
	b.WriteString("src,dst\n")
	sizes := []int{60, 40, 20}
	for group, size := range sizes {
		for v := range size {
			for range 5 {
				fmt.Fprintf(
					&b, "g%d-%d,g%d-%d\n", group+1, v, group+1, (v+1+random.IntN(size-1))%size,
				)
			}
		}
		fmt.Fprintf(&b, "g%d-0,g%d-1\n", group+1, (group+1)%3+1)
	}
	b.WriteString("pair-1,pair-2\n")
	return testfile.New(t, "edges.csv", b.String())
}

// createdFile makes a file as every other one that a command writes where its user says.
func createdFile(t *testing.T) string {
	t.Helper()
	file, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	return file.Name()
}

func fileMode(t *testing.T, path string) os.FileMode {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Mode()
}

// The members file must have the planted groups, the largest first, and no group below the
// minimum size. The same seed must give the same file, and estimate must take it.
func TestCommunitiesAreFoundAndEstimated(t *testing.T) {
	edges, dir := plantedEdges(t), t.TempDir()
	members := filepath.Join(dir, "members.csv")
	out, said := mustRun(t, "communities", "--edges", edges, "--out", members, "--prefix", "may-")
	for _, want := range []string{
		"122 vertices, ", "modularity 0.5889",
		"communities of 11 members or more: 3, with 120 vertices",
		"omitted: 2 vertices (1.6 %) in smaller communities (1)",
		"largest 60, median 40, smallest 20",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if !strings.Contains(said, "pass 1: ") {
		t.Errorf("nothing is said of the passes:\n%s", said)
	}
	file, err := os.Open(members)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	rows, err := csv.NewReader(file).ReadAll()
	if err != nil || len(rows) != 121 || strings.Join(rows[0], ",") != "community,vertex" {
		t.Fatalf("%d rows, the first %q: %v", len(rows), rows[0], err)
	}
	for _, row := range rows[1:] {
		if group, _, _ := strings.Cut(row[1], "-"); row[0] != "may-"+group[1:] {
			t.Errorf("%s is in %s", row[1], row[0])
		}
	}
	if mode := fileMode(t, members); mode != fileMode(t, createdFile(t)) {
		t.Errorf("the file of members has mode %v", mode)
	}
	again, _ := mustRun(
		t, "communities", "--edges", edges, "--out", "-", "--min-size", "10", "--prefix", "may-",
	)
	if whole, err := os.ReadFile(members); err != nil || string(whole) != again {
		t.Errorf("another run wrote another file: %v", err)
	}
	labels := testfile.New(t, "labels.csv", "vertex,label\ng1-0,0\ng2-0,1\ng3-0,1\n")
	table, _ := mustRun(
		t, "estimate", "--edges", edges, "--labels", labels, "--members", members, "--classes", "2",
		"--classifier", "diffusion",
	)
	if strings.Count(table, "may-") != 3 {
		t.Errorf("estimates of the communities:\n%s", table)
	}
}

// A refusal must say the reason and leave no file behind.
func TestCommunitiesExplainsRefusals(t *testing.T) {
	edges := plantedEdges(t)
	for name, c := range map[string]struct {
		code int
		want string
		args []string
	}{
		"no input": {exitUsage, "give --edges or --log", nil},
		"size below one": {
			exitUsage, "--min-size is 0",
			[]string{"--edges", edges, "--min-size", "0"},
		},
		"no resolution": {
			exitUsage, "resolution is 0",
			[]string{"--edges", edges, "--resolution", "0"},
		},
		"no column": {
			exitUsage, `no column "src", "dst"`,
			[]string{"--edges", testfile.New(t, "e.csv", "a,b\n1,2\n")},
		},
		"no edges": {exitUsage, "no edges", []string{
			"--edges",
			testfile.New(t, "e.csv", "src,dst\n"),
		}},
		"only itself": {exitUsage, "no edges", []string{
			"--edges",
			testfile.New(t, "e.csv", "src,dst\n1,1\n"),
		}},
		"a refused row": {
			exitFailed, "nothing is written: 1 of 2 rows were refused",
			[]string{"--edges", testfile.New(t, "e.csv", "src,dst,weight\n1,2,1\n2,3,-1\n")},
		},
		"all are small": {exitFailed, "the largest of 4 communities has 60 members; nothing is " +
			"written without --min-size 60 or less", []string{
			"--edges", edges, "--min-size",
			"61",
		}},
		"no such folder": {
			exitUsage, "no such file",
			[]string{"--edges", edges, "--out", filepath.Join(t.TempDir(), "none", "m.csv")},
		},
		"no such format": {
			exitUsage, "ends in .parquet or .csv, or -",
			[]string{"--edges", edges, "--out", "m.txt"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "members.csv")
			args := append([]string{"communities", "--out", out}, c.args...)
			code, printed, said := runCommand(args...)
			if code != c.code || !strings.Contains(said, c.want) || printed != "" {
				t.Errorf("exit %d, want %d; %q\n%s%s", code, c.code, c.want, printed, said)
			}
			if left, _ := filepath.Glob(filepath.Join(filepath.Dir(out), "*")); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

// An edge from a vertex to itself says nothing of communities: it is counted and fails nothing.
func TestCommunitiesIgnoreSelfLoops(t *testing.T) {
	edges := testfile.New(t, "e.csv", "src,dst\n1,2\n2,3\n1,3\n3,3\n")
	out, said := mustRun(
		t, "communities", "--edges", edges, "--min-size", "2", "--out",
		filepath.Join(t.TempDir(), "m.csv"),
	)
	if !strings.Contains(said, "left out: 1 self-loops") ||
		!strings.Contains(out, "3 vertices, 3 edges") {
		t.Errorf("%s\n%s", out, said)
	}
}
