package cluster

import (
	"flag"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/nats-io/nats-server/v2/server"

	"gqlstream/internal/testfile"
)

// The options of the server in the manifest must give a server of the cluster that finds
// the two others, and the probes must ask for paths that the page has.
func TestManifestsFitTheServers(t *testing.T) {
	setPasswords(t)
	manifest := text(t, "kubernetes/nats.yaml")
	dir := t.TempDir()
	certificates(t, dir)
	testfile.Write(t, filepath.Join(dir, "permissions.conf"), text(t, "permissions.conf"))
	common := testfile.Write(
		t,
		filepath.Join(dir, "common.conf"),
		strings.ReplaceAll(text(t, "common.conf"), "/etc/nats/tls", dir),
	)
	var args []string
	for _, arg := range serverArguments(t, manifest) {
		args = append(
			args,
			strings.NewReplacer("/etc/nats-config/common.conf", common, "$(POD_NAME)", "nats-2").
				Replace(arg),
		)
	}
	options, err := server.ConfigureOptions(
		flag.NewFlagSet("nats-server", flag.ContinueOnError), args, nil, nil, nil,
	)
	if err != nil {
		t.Fatalf("%q: %v", args, err)
	}
	if options.ServerName != "nats-2" || len(options.Routes) != 3 ||
		options.Routes[0].Host != "nats-0.nats:6222" ||
		options.Cluster.Name != "gqlstream" ||
		!options.SyncAlways {
		t.Errorf(
			"the server is %s of %s with the routes %v", options.ServerName, options.Cluster.Name,
			options.Routes,
		)
	}
	for _, name := range []string{"nats", "gqlstream"} {
		for document := range strings.SplitSeq(text(t, "kubernetes/"+name+".yaml"), "\n---\n") {
			var object struct {
				APIVersion string         `yaml:"apiVersion"`
				Kind       string         `yaml:"kind"`
				Metadata   map[string]any `yaml:"metadata"`
				Spec       map[string]any `yaml:"spec"`
			}
			if err := yaml.NewDecoder(strings.NewReader(document),
				yaml.Strict()).Decode(&object); err != nil {
				t.Fatal(yaml.FormatError(err, false, true))
			}
			if object.Metadata["name"] != name || object.Spec == nil {
				t.Errorf("%s of %s is named %v", object.Kind, name, object.Metadata["name"])
			}
		}
	}
	for _, path := range []string{"/healthz", "/readyz"} {
		if !strings.Contains(text(t, "kubernetes/gqlstream.yaml"), "path: "+path) {
			t.Errorf("nothing asks for %s", path)
		}
	}
}

// serverArguments returns the arguments of the first container of the set in a manifest.
func serverArguments(t *testing.T, manifest string) []string {
	t.Helper()
	for document := range strings.SplitSeq(manifest, "\n---\n") {
		var set struct {
			Spec struct {
				Template struct {
					Spec struct {
						Containers []struct{ Args []string }
					}
				}
			}
		}
		if err := yaml.Unmarshal([]byte(document), &set); err != nil {
			t.Fatal(yaml.FormatError(err, false, true))
		}
		if list := set.Spec.Template.Spec.Containers; len(list) > 0 {
			return list[0].Args
		}
	}
	t.Fatal("the manifest has no container")
	return nil
}
