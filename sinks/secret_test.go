package sinks

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gqlstream/internal/testfile"
)

// A secret that others can read or change is refused. One of root that a group can read is taken:
// so Kubernetes mounts secrets (0440), and so an access list looks that systemd makes.
func TestSecretsAreReadAsTheyAreMounted(t *testing.T) {
	const secret = "0123456789abcdef0123456789abcdef"
	root := os.Getuid() == 0
	for _, c := range []struct {
		mode os.FileMode
		user int
		want string // in the error; empty: it is read
	}{
		{0o600, 0, ""},
		{0o400, 0, ""},
		{0o600, 65532, ""},
		{0o440, 0, ""},
		{0o640, 0, ""},
		{0o640, 65532, "its group can read it"},
		{0o440, 65532, "its group can read it"},
		{0o660, 0, "others can read or change it"},
		{0o444, 0, "others can read or change it"},
		{0o602, 0, "others can read or change it"},
		{0o604, 65532, "chmod 600"},
	} {
		if !root && c.user == 0 {
			c.user = os.Getuid()
			if c.mode&0o040 != 0 && c.want == "" {
				c.want = "its group can read it"
			}
		}
		path := filepath.Join(t.TempDir(), "secret")
		testfile.Write(t, path, secret+"\n")
		if root {
			if err := os.Chown(path, c.user, 65532); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Chmod(path, c.mode); err != nil {
			t.Fatal(err)
		}
		got, err := ReadSecret(path, 32)
		if c.want == "" && (err != nil || string(got) != secret) {
			t.Errorf("mode %#o of %d: %q, %v", c.mode, c.user, got, err)
		}
		if c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("mode %#o of %d: error %v, want %q", c.mode, c.user, err, c.want)
		}
	}
}
