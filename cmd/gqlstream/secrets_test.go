package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// No command may print the password in the URL of its server, whether that answers or not.
func TestNoOutputHoldsThePasswordOfTheBroker(t *testing.T) {
	const url = "nats://gq:s3cr3t-PASS@127.0.0.1:1"
	dir := t.TempDir()
	config := filepath.Join(dir, "gqlstream.yaml")
	writeConfig(t, config, "classes: 2\nnats: {url: \""+url+"\"}\nstate: "+filepath.Join(dir, "state")+"\nhttp: {listen: \"off\"}\n")
	edges := filepath.Join(dir, "edges.csv")
	writeConfig(t, edges, "src,dst\n1,2\n")
	for _, args := range [][]string{
		{"check", config},
		{"run", "--config", config},
		{"replay", "--config", config},
		{"explain", "--config", config, "--community", "everyone"},
		{"quarantine", "list", "--nats", url},
		{"publish", "--edges", edges, "--nats", url},
	} {
		code, out, said := runCommand(args...)
		if text := out + said; strings.Contains(text, "s3cr3t") || !strings.Contains(text, "127.0.0.1:1") {
			t.Errorf("%v: exit %d\n%s", args, code, text)
		}
	}
}
