package main

import (
	"strings"
	"testing"

	"gqlstream/pipeline/config"
)

// A classifier that there is not must be refused by its name.
func TestUnknownClassifierIsRefused(t *testing.T) {
	settings := config.Settings{Classes: config.Classes{"a", "b"}, Classifier: "oracle"}
	if _, err := settings.Core(); err == nil || !strings.Contains(err.Error(), "oracle") {
		t.Errorf("a classifier that does not exist: %v", err)
	}
}
