package main

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
)

// A build with make must print the version that the Makefile stamps, and this one the
// version that Go recorded.
func TestVersionIsThatOfTheBuild(t *testing.T) {
	out, _ := mustRun(t, "version")
	want := regexp.MustCompile(
		`^gqlstream \S+ go1\.\S+ ` + runtime.GOOS + "/" + runtime.GOARCH + ` event schema 1\n$`,
	)
	if !want.MatchString(out) || strings.Contains(out, "gqlstream v") {
		t.Errorf("version says %q", out)
	}
	for _, file := range []string{"Makefile", ".ci/dist", "Dockerfile"} {
		if !strings.Contains(fromRoot(t, filepath.FromSlash(file)), "-X main.stampedVersion=") {
			t.Errorf("%s does not stamp the version", file)
		}
	}
}

// An archive must hold the licence of every module that is linked into the binary.
func TestLicencesOfAllModules(t *testing.T) {
	command := exec.Command(filepath.Join(".ci", "licences"))
	command.Dir = filepath.Join("..", "..")
	text, err := command.Output()
	if err != nil {
		t.Fatal(err)
	}
	list := exec.Command(
		"go", "list", "-deps", "-f",
		"{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}}{{end}}{{end}}", "./cmd/gqlstream",
	)
	list.Dir = command.Dir
	modules, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	for module := range strings.Lines(string(modules)) {
		if module = strings.TrimSpace(module); module != "" &&
			!strings.Contains(string(text), "== "+module+": ") {
			t.Errorf("no licence of %s", module)
		}
	}
	for _, name := range []string{"== Go go1.", "== uPlot"} {
		if !strings.Contains(string(text), name) {
			t.Errorf("no licence of %s", name)
		}
	}
}
