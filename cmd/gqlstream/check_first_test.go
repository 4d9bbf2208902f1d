package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gqlstream/internal/testfile"
)

// A run with a mistake in its configuration must end before it starts a server or records anything.
func TestARunWithAMistakeStartsNothing(t *testing.T) {
	for name, mistake := range map[string]string{
		"a condition": "alerts: [{name: x, when: pont > 0.5}]",
		"a class":     "alerts: [{name: x, when: point > 0.5, classes: nobody}]",
		"a template": `notify: {webhooks: [{name: x, url: "http://127.0.0.1:1/", template: ` +
			`"{{range 300000000}}x{{end}}"}]}`,
		"a rule":       "communities: [{name: x, rule: 'age >='}]",
		"a method":     "estimates: [{method: magic}]",
		"a key":        "privacy: {floor: 11}",
		"the rounding": "privacy: {round: 0.7}",
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			conf, state := filepath.Join(dir, "c.yaml"), filepath.Join(dir, "state")
			text := "classes: [left, right]\nhttp: {listen: 'off'}\n" + mistake + "\n"
			testfile.Write(t, conf, text)
			code, _, said := runCommand("run", "--config", conf, "--state", state)
			if code != exitUsage || strings.TrimSpace(said) == "" {
				t.Errorf("exit %d: %s", code, said)
			}
			if _, err := os.Stat(state); !os.IsNotExist(err) {
				t.Errorf("there is a state: %v", err)
			}
		})
	}
}

// An alert on a community that the configuration does not define may be a misspelling.
func TestCheckNotesUnknownCommunities(t *testing.T) {
	conf := filepath.Join(t.TempDir(), "c.yaml")
	testfile.Write(t, conf, "classes: [left, right]\n"+
		"communities: [{name: everyone, everyone: true}, {name: berlin, where: {city: berlin}}]\n"+
		"alerts:\n  rules:\n"+
		"    - {name: jump, when: cusum, communities: [berln, everyone, 'g-*']}\n")
	_, said := mustRun(t, "check", conf)
	if !strings.Contains(said, `"berln"`) || !strings.Contains(said, `did you mean "berlin"?`) {
		t.Errorf("check says %s", said)
	}
	if strings.Contains(said, `"g-*"`) || strings.Contains(said, `"everyone"`) {
		t.Errorf("check says of communities that may be: %s", said)
	}
}
