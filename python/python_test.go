//go:build python

// Package python holds the test of the Python package, which is not Go.
package python

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// interpreter is the Python that has the packages: $PYTHON, or python3.
func interpreter() string {
	if p := os.Getenv("PYTHON"); p != "" {
		return p
	}
	return "python3"
}

// output runs a program and returns its standard output.
func output(t *testing.T, env []string, name string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, name, args...)
	command.Env = append(os.Environ(), env...)
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// startRun builds gqlstream, starts a run with a server of its own and the data of the
// examples in its log, and returns the program and the addresses that the run says.
func startRun(t *testing.T) (program, server, page string) {
	t.Helper()
	dir := t.TempDir()
	program = filepath.Join(dir, "gqlstream")
	output(t, []string{"CGO_ENABLED=0"}, "go", "build", "-o", program, "../cmd/gqlstream")
	command := exec.Command(
		program, "run", "--state", filepath.Join(dir, "state"), "--classes", "left,right",
		"--listen", "127.0.0.1:0", "--http", "127.0.0.1:0",
	)
	said, err := command.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := command.Process.Signal(os.Interrupt); err != nil {
			t.Error(err)
		}
		if err := command.Wait(); err != nil {
			t.Errorf("the run ended: %v", err)
		}
	})
	lines, addresses := bufio.NewScanner(said), regexp.MustCompile(
		`(nats|http)://127\.0\.0\.1:[1-9]\d*`,
	)
	for (server == "" || page == "") && lines.Scan() {
		switch address := addresses.FindString(lines.Text()); {
		case strings.HasPrefix(address, "nats"):
			server = address
		case strings.HasPrefix(address, "http"):
			page = address
		}
	}
	if server == "" || page == "" {
		t.Fatal("the run does not say its addresses")
	}
	go func() { // until the program ends
		for lines.Scan() {
		}
	}()
	data := filepath.Join("..", "examples", "data")
	output(
		t, nil, program, "publish", "--classes", "left,right", "--nats", server, "--edges",
		filepath.Join(data, "edges.csv"), "--labels", filepath.Join(data, "labels.csv"),
		"--predictions", filepath.Join(data, "predictions.csv"), "--members",
		filepath.Join(data, "members.csv"),
	)
	output(t, nil, program, "watch", "--url", page, "--count", "2") // waits for estimates
	return program, server, page
}

// The script must run as its first lines say: estimates to frames, predictions of its
// model into the log, none refused, and estimates by these predictions back.
func TestScriptGoesThereAndBack(t *testing.T) {
	program, server, page := startRun(t)
	out := output(t, nil, interpreter(), "gqlstream.py", server, page)
	for _, want := range []string{"berlin", "left", "votes-1", " records of 3 communities"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	labels := output(t, nil, interpreter(), "-c", "import gqlstream, sys\n"+
		"found = gqlstream.confusion(sys.argv[1])\n"+
		"print(sorted(set(found['class']) | set(found['predicted'])), list(found.columns),\n"+
		"  found[found.community.isna()].labels.sum() > 10)", page)
	if want := "['left', 'right'] ['community', 'class', 'predicted', 'labels'] True"; !strings.
		Contains(labels, want) {
		t.Errorf("the confusion is %s, want %s", labels, want)
	}
	if refused := output(t, nil, program, "quarantine", "list", "--nats",
		server); !strings.Contains(refused, "0 entries") {
		t.Errorf("refused:\n%s", refused)
	}
}

// The folder must be a package that pip can build, with the module in it.
func TestPackageCanBeInstalled(t *testing.T) {
	dir := t.TempDir()
	source := filepath.Join(dir, "source") // a build leaves files behind
	if err := os.CopyFS(source, os.DirFS(".")); err != nil {
		t.Fatal(err)
	}
	target := filepath.Join(dir, "target")
	output(
		t, nil, interpreter(), "-m", "pip", "install", "--quiet", "--no-deps", "--target", target,
		source,
	)
	// The current folder has the same module: it is taken out of the search.
	out := output(t, []string{"PYTHONPATH=" + target}, interpreter(), "-c",
		"import sys; sys.path = [p for p in sys.path if p]\n"+
			"import gqlstream, importlib.metadata as m\n"+
			"print(gqlstream.__file__, m.version('gqlstream'))")
	if !strings.Contains(out, filepath.Join(target, "gqlstream.py")) {
		t.Errorf("the module is not that of the package: %s", out)
	}
}

// The notebook must run from top to bottom, and end with the estimates of its model.
func TestNotebookRunsFromTopToBottom(t *testing.T) {
	program, server, page := startRun(t)
	result := filepath.Join(t.TempDir(), "result.ipynb")
	output(
		t, []string{"GQLSTREAM_NATS=" + server, "GQLSTREAM_PAGE=" + page}, interpreter(),
		"run_notebook.py", "notebook.ipynb", result,
	)
	text, err := os.ReadFile(result)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`prevalence after`, `"execution_count": 7`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %q in the notebook's outputs", want)
		}
	}
	if refused := output(t, nil, program, "quarantine", "list", "--nats",
		server); !strings.Contains(refused, "0 entries") {
		t.Errorf("refused:\n%s", refused)
	}
}
