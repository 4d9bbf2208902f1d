package main

import (
	"net"
	"path/filepath"
	"strings"
	"testing"

	"gqlstream/internal/testfile"
)

// The health of a run must be told by its address or its configuration, also by TLS with a
// certificate for other names, and be bad where nothing answers.
func TestHealthAsksThePage(t *testing.T) {
	for _, tls := range []bool{false, true} {
		dir := t.TempDir()
		text := "classes: 2\nstate: " + filepath.Join(dir, "state") + "\n"
		listen := freeAddress(t)
		http := "http: {listen: '" + listen + "'"
		if tls {
			secrets(t, dir)
			http += ", token_file: " + dir + "/token, cert_file: " + dir + "/cert.pem, key_file: " +
				dir + "/key.pem"
		}
		path := filepath.Join(dir, "gqlstream.yaml")
		testfile.Write(t, path, text+http+"}\n")
		if code, _, said := runCommand("health", "--config", path); code != exitFailed ||
			!strings.Contains(said, "refused") {
			t.Errorf("before the run: exit %d: %s", code, said)
		}
		p := startPipeline(t, path)
		if out, _ := mustRun(t, "health", "--config", path); out != "ok\n" {
			t.Errorf("the run is %q", out)
		}
		if tls {
			continue
		}
		address := strings.Trim(strings.TrimPrefix(p.Page.URL(), "http:"), "/")
		mustRun(t, "health", "--http", address)
		_, port, _ := net.SplitHostPort(address)
		mustRun(t, "health", "--http", "0.0.0.0:"+port)
		for code, out := exitFailed, ""; code != exitFine; { // the first step comes within a second
			if code, out, _ = runCommand("health", "--config", path, "--ready"); code == exitFine &&
				out != "ready\n" {
				t.Errorf("the run is %q", out)
			}
		}
	}
}
