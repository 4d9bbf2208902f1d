package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gqlstream/internal/testfile"
)

// The server may be that of a context of the command nats, or of NATS_URL. Flags win.
func TestServersOfNATSUsers(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", dir)
	if err := os.MkdirAll(filepath.Join(dir, "nats", "context"), 0o700); err != nil {
		t.Fatal(err)
	}
	text := `{"url":"nats://broker:4223","user":"ann","password":"a/b","ca":"/ca.pem",` +
		`"jetstream_domain":"leaf"}`
	testfile.Write(t, filepath.Join(dir, "nats", "context", "lab.json"), text)
	c, err := (&serverFlags{Context: "lab"}).load()
	if err != nil || c.NATS.URL != "nats://ann:a%2Fb@broker:4223" || c.NATS.CAFile != "/ca.pem" ||
		c.NATS.Domain != "leaf" {
		t.Errorf("%v %+v", err, c.NATS)
	}
	for text, want := range map[string]string{
		`{"url":"nats://a:1, nats://b:2","user":"ann","password":"pw"}`: "nats://ann:pw@a:1," +
			"nats://ann:pw@b:2",
		`{"url":"nats://me:x@a:1,tls://b:2","token":"t"}`: "nats://me:x@a:1," +
			"tls://t@b:2",
		`{"token":"t"}`: "nats://t@127.0.0.1:4222",
		`{"url":"nats://a:1","nsc":"nsc://op/account/user"}`:  "nsc generate creds",
		`{"url":"nats://a:1","user_jwt":"x","user_seed":"y"}`: "user_jwt is not read here",
		`{"url":"nats://a:1","jetstream_api_prefix":"x"}`:     "use jetstream_domain",
	} {
		testfile.Write(t, filepath.Join(dir, "nats", "context", "x.json"), text)
		c, err := (&serverFlags{Context: "x"}).load()
		if c.NATS.URL != want && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %q %v, want %q", text, c.NATS.URL, err, want)
		}
	}
	t.Setenv("HOME", "/home/ann")
	text = `{"url":"nats://a:1","creds":"~/nats/ann.creds"}`
	testfile.Write(t, filepath.Join(dir, "nats", "context", "x.json"), text)
	if c, err := (&serverFlags{Context: "x"}).load(); err != nil ||
		c.NATS.Credentials != "/home/ann/nats/ann.creds" {
		t.Errorf("%v %+v", err, c.NATS)
	}
	if c, err := (&serverFlags{Context: "lab", NATS: "nats://other:1"}).load(); err != nil ||
		c.NATS.URL != "nats://other:1" {
		t.Errorf("a flag: %v %+v", err, c.NATS)
	}
	if _, err := (&serverFlags{Context: "none"}).load(); err == nil ||
		!strings.Contains(err.Error(), "nats context ls") {
		t.Errorf("no such context: %v", err)
	}
	t.Setenv("NATS_URL", "nats://env:4222")
	if c, err := (&serverFlags{}).load(); err != nil || c.NATS.URL != "nats://env:4222" {
		t.Errorf("NATS_URL: %v %+v", err, c.NATS)
	}
	if c, err := (&serverFlags{State: "x"}).load(); err != nil || c.NATS.URL != "" {
		t.Errorf("NATS_URL beside a state directory: %v %+v", err, c.NATS)
	}
}
