package main

import (
	"testing"

	"gqlstream/pipeline/config"
)

// The digest of results must be the same each time and depend on everything that decides
// estimates, and on nothing else.
func TestResultsDigestNamesResults(t *testing.T) {
	digest := func(change func(*config.Settings)) string {
		t.Helper()
		settings := config.Settings{Classes: config.Classes{"a", "b", "c"}}
		change(&settings)
		conf, err := settings.Core()
		if err != nil {
			t.Fatal(err)
		}
		results, err := resultsDigest(conf)
		if err != nil {
			t.Fatal(err)
		}
		return results
	}
	plain := digest(func(*config.Settings) {})
	if again := digest(func(*config.Settings) {}); again != plain {
		t.Errorf("%s, and then %s", plain, again)
	}
	for name, change := range map[string]func(*config.Settings){
		"method": func(s *config.Settings) { s.Estimates = []config.Estimate{{Method: "pcc"}} },
		"kernel": func(s *config.Settings) { s.Alpha = 0.3 },
	} {
		if digest(change) == plain {
			t.Errorf("another %s has the same results", name)
		}
	}
	if same := digest(func(s *config.Settings) { s.State = "elsewhere" }); same != plain {
		t.Errorf("another state directory has other results: %s, want %s", same, plain)
	}
}
