package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"gqlstream/internal/testfile"
)

// No command may print the password in the URL of its server, whether that answers or not.
func TestNoOutputHoldsThePasswordOfTheBroker(t *testing.T) {
	const url = "nats://gq:s3cr3t-PASS@127.0.0.1:1"
	dir := t.TempDir()
	config := filepath.Join(dir, "gqlstream.yaml")
	testfile.Write(
		t,
		config,
		"classes: 2\nnats: {url: \""+url+"\"}\nstate: "+filepath.Join(
			dir,
			"state",
		)+"\nhttp: {listen: \"off\"}\n",
	)
	edges := filepath.Join(dir, "edges.csv")
	testfile.Write(t, edges, "src,dst\n1,2\n")
	for _, args := range [][]string{
		{"check", config},
		{"run", "--config", config},
		{"replay", "--config", config},
		{"explain", "--config", config, "--community", "everyone"},
		{"quarantine", "list", "--nats", url},
		{"publish", "--edges", edges, "--nats", url},
	} {
		code, out, said := runCommand(args...)
		if text := out + said; strings.Contains(text, "s3cr3t") ||
			!strings.Contains(text, "127.0.0.1:1") {
			t.Errorf("%v: exit %d\n%s", args, code, text)
		}
	}
}

// The path of a webhook is a secret, because it permits posting: check prints the host
// alone.
func TestCheckDoesNotPrintThePathOfAWebhook(t *testing.T) {
	config := filepath.Join(t.TempDir(), "gqlstream.yaml")
	testfile.Write(
		t,
		config,
		"classes: 2\nalerts: [{name: a, when: point > 0.5}]\nnotify:\n  webhooks:\n"+
			"    - {name: slack, url: \"https://hooks.example/services/T0/s3cr3t\", template: "+
			"slack}\n"+
			"    - {name: query, url: \"https://hooks.example?token=s3cr3t\"}\n    - {name: "+
			"plain, url: \"https://hooks.example/\"}\n",
	)
	code, out, said := runCommand("check", config)
	if code != 0 || strings.Contains(out+said, "s3cr3t") ||
		strings.Count(out, "https://hooks.example/xxxxx") != 2 ||
		!strings.Contains(out, "https://hooks.example/\n") {
		t.Errorf("exit %d\n%s%s", code, out, said)
	}
}

// A configuration with missing files must not pass, unless they are on another machine.
func TestCheckLooksForTheFilesNamed(t *testing.T) {
	dir := t.TempDir()
	config := filepath.Join(dir, "gqlstream.yaml")
	for _, keys := range []string{
		"http: {token_file: %s}", "http: {cert_file: %s, key_file: %[1]s}",
		"nats: {url: nats://localhost, credentials: %s}",
		"nats: {url: nats://localhost, ca_file: %s}",
		"notify: {webhooks: [{name: a, url: http://localhost, secret_file: %s}]}",
		"notify: {alertmanagers: [{name: a, url: http://localhost, token_file: %s}]}",
	} {
		testfile.Write(
			t,
			config,
			"classes: 2\n"+fmt.Sprintf(keys, filepath.Join(dir, "missing"))+"\n",
		)
		if code, _, said := runCommand("check", config); code != exitUsage ||
			!strings.Contains(said, "missing: no such file") {
			t.Errorf("%s: exit %d\n%s", keys, code, said)
		}
		mustRun(t, "check", "--elsewhere", config)
	}
}
