package main

import (
	"slices"
	"strings"
	"testing"

	"gqlstream/config"
)

// The method enq is acc on the predictions of the built-in classifier of that name,
// and leaves the other methods as they are.
func TestMethodEnqIsAClassifier(t *testing.T) {
	for _, c := range []struct{ list, classifier, wantMethods, wantClassifier string }{
		{"enq", "", "acc", "enq"},
		{"mlpe, enq,auto", "", "mlpe,acc,auto", "enq"},
		{"acc,enq", "enq", "acc", "enq"},
		{"auto", "diffusion", "auto", "diffusion"},
		{"auto", "", "auto", ""},
	} {
		f := config.CoreFlags{Method: c.list, Classifier: c.classifier}
		settings, err := f.Settings()
		if err != nil {
			t.Fatalf("%q: %v", c.list, err)
		}
		var methods []string
		for _, e := range settings.Estimates {
			methods = append(methods, e.Method)
		}
		if !slices.Equal(methods, strings.Split(c.wantMethods, ",")) || settings.Classifier != c.wantClassifier {
			t.Errorf("%q, %q: methods %v, classifier %q", c.list, c.classifier, methods, settings.Classifier)
		}
	}
	f := config.CoreFlags{Method: "enq", Classifier: "diffusion"}
	if _, err := f.Settings(); err == nil {
		t.Error("enq beside the classifier diffusion was accepted")
	}
	settings := config.Settings{Classes: config.Classes{"a", "b"}, Classifier: "oracle"}
	if _, err := settings.Core(); err == nil || !strings.Contains(err.Error(), "oracle") {
		t.Errorf("a classifier that does not exist: %v", err)
	}
}
