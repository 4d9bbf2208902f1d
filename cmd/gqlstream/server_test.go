package main

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"gqlstream/internal/testfile"
)

// Every command that reads or writes streams must find them by the configuration alone: by its
// address and prefix, with the certificates without which the server talks to nobody.
func TestCommandsFindTheServerOfTheConfiguration(t *testing.T) {
	dir := t.TempDir()
	secrets(t, dir)
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	secure, err := server.GenTLSConfig(
		&server.TLSConfigOpts{CertFile: cert, KeyFile: key, CaFile: cert, Verify: true},
	)
	if err != nil {
		t.Fatal(err)
	}
	nats := startNATS(t, &server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true, TLSConfig: secure,
		TLSVerify: true,
		JetStream: true, StoreDir: dir,
	})
	conf, state, labels := filepath.Join(dir, "gqlstream.yaml"), filepath.Join(
		dir,
		"state",
	), filepath.Join(dir, "labels.csv")
	testfile.Write(
		t,
		conf,
		"{classes: [left, right], state: "+state+", nats: {url: '"+nats.ClientURL()+
			"', prefix: team, ca_file: "+cert+
			", cert_file: "+cert+", key_file: "+key+"}, http: {listen: 'off'}}",
	)
	testfile.Write(t, labels, "vertex,label\n1,left\n2,right\n")
	for _, c := range []struct{ line, said string }{
		{"simulate --duration 5s --vertices 300", "publishes to stream TEAM"},
		{"publish --labels " + labels, "published 2 events in 1 messages"},
		{"run --exit-when-drained", ""},
		{"publish --note hello", "published the note at position"},
		{"run --exit-when-drained", ""},
		{"quarantine list", "0 entries"},
		{"purge --dry-run", "would delete messages 1 to"},
	} {
		out, said := mustRun(t, append(strings.Fields(c.line), "--config", conf)...)
		if !strings.Contains(out+said, c.said) {
			t.Errorf("%s: %s%s", c.line, out, said)
		}
	}
	for line, want := range map[string]string{
		"publish --note hello --nats " + nats.ClientURL(): "certificate",
		"group nobody --config " + conf:                   "nobody",
		"group nobody": "no server; give --nats URL, or " +
			"--config FILE with nats.url",
		"publish --note hello --nats x --prefix a.b": `nats.prefix: "a.b"`,
	} {
		if code, out, said := runCommand(strings.Fields(line)...); code == exitFine ||
			!strings.Contains(said, want) {
			t.Errorf("%s: exit %d, want %q in\n%s%s", line, code, want, out, said)
		}
	}
}

// startNATS starts a server for the time of a test.
func startNATS(t *testing.T, options *server.Options) *server.Server {
	t.Helper()
	s, err := server.NewServer(options)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(10 * time.Second) {
		t.Fatal("the server does not start")
	}
	return s
}
