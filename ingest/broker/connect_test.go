package broker

import (
	"strings"
	"testing"
)

// A password or token in a URL must never be printed, wherever the URL or an error about
// it is.
func TestSecretsInURLsAreRedacted(t *testing.T) {
	for given, want := range map[string]string{
		"nats://host:4222":                         "nats://host:4222",
		"nats://gq:s3cr3t@host:4222":               "xxxxx@host:4222",
		"nats://s3cr3t@host:4222":                  "xxxxx@host:4222",
		"nats://gq:s3c@r3t@a:1,tls://x:s3cr3t@b:2": "xxxxx@b:2",
		"gq:s3cr3t@host":                           "xxxxx@host",
		"nats://gq:s3cr3t,x@a:1":                   "xxxxx@a:1",
		"nats://gq:s3cr3t@a:1,b:2":                 "xxxxx@a:1,b:2",
		"a:4222,nats://b,tls://[::1]:4222/":        "a:4222,nats://b,tls://[::1]:4222/",
	} {
		if got := Redacted(given); got != want {
			t.Errorf("%s is printed as %s, want %s", given, got, want)
		}
	}
	for _, url := range []string{
		"nats://gq:s3cr3t@127.0.0.1:1", "nats://gq:s3cr3t%zz@127.0.0.1:1",
		"nats://gq:s3cr3t@127.0.0.1:x",
		"nats://gq:s3cr3t/x@127.0.0.1:1", "nats://gq:s3cr3t#x@127.0.0.1:1",
		"nats://gq:s3cr3t?x@127.0.0.1:1", "gq:s3cr3t/x@127.0.0.1:1",
	} {
		_, err := Connect(ConnectConfig{URL: url})
		if err == nil || strings.Contains(err.Error(), "s3cr3t") ||
			!strings.Contains(err.Error(), "127.0.0.1") {
			t.Errorf("%s: %v", url, err)
		}
	}
}
