package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gqlstream/ingest"
	"gqlstream/ingest/broker"
	"gqlstream/ingest/event"
	"gqlstream/pipeline/config"
)

// fillQuarantine makes a state directory with four refused messages.
func fillQuarantine(t *testing.T) (state string) {
	t.Helper()
	state = t.TempDir()
	b, err := config.OpenBroker(config.Settings{State: state}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	ctx, names := t.Context(), broker.DefaultStreamNames()
	if err := broker.EnsureStreams(ctx, b.JS, names); err != nil {
		t.Fatal(err)
	}
	w, err := ingest.NewQuarantineWriter(ctx, b.NC, names)
	if err != nil {
		t.Fatal(err)
	}
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- w.Run(running) }()
	err = w.Write(ctx, []event.Refusal{
		{
			Position: 3,
			Index:    -1,
			Kind:     event.KindEdge,
			Reason:   event.Malformed,
			Detail:   "byte 0",
			Original: []byte("\x1b[31mred\xff"),
		},
		{
			Position: 5,
			Index:    2,
			Kind:     event.KindEdge,
			Reason:   event.SelfLoop,
			Original: []byte(`{"src":1,"dst":1}`),
		},
		{
			Position: 9,
			Index:    0,
			Kind:     event.KindLabel,
			Reason:   event.UnknownClass,
			Original: []byte("{\"vertex\":1,\n \"label\":\"<é>\"}"),
		},
		{
			Position: 11,
			Index:    0,
			Kind:     event.KindControl,
			Reason:   event.Malformed,
			Original: []byte("\u009b31m"),
		},
	})
	err = errors.Join(err, w.Settle(ctx))
	stop()
	if err := errors.Join(err, <-ended); err != nil {
		t.Fatal(err)
	}
	return state
}

// Refused events can be listed, shown byte for byte, corrected and published again, once.
func TestQuarantineCommands(t *testing.T) {
	state := fillQuarantine(t)
	corrected := filepath.Join(t.TempDir(), "corrected.json")
	if err := os.WriteFile(corrected, []byte(`{"vertex":1,"label":0}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args  string
		code  int
		out   []string // contained in the output
		wrong []string // not contained in it
	}{
		{"list", 0, []string{"malformed", "self-loop", "unknown-class", "byte 0"}, nil},
		{"list --reason self-loop", 0, []string{"self-loop"}, []string{"malformed"}},
		{"list --kind label", 0, []string{"unknown-class"}, []string{"self-loop"}},
		{"list --reason selfloop", 2, nil, nil},
		{"list --kind nonsense", 2, nil, nil},
		{"retry --reason selfloop", 2, nil, nil},
		{"list --json", 0, []string{`"entry":1`, `"position":3`, `"index":-1`}, nil},
		{"show 1", 0, []string{"malformed", `"original": "\u001b[31mred`}, []string{"\x1b"}},
		{"show 1 --original", 0, []string{"\x1b[31mred\xff"}, nil},
		{"show 2", 0, []string{`"original": "{\"src\":1,\"dst\":1}"`, "self-loop"}, nil},
		{"show 3", 0, []string{`{\"vertex\":1,\n \"label\":\"<é>\"}`}, nil},
		{"show 4", 0, []string{`?31m`}, []string{"\u009b"}},
		{"show 77", 1, nil, nil},
		{"retry", 2, nil, nil},
		{"retry 1 --reason malformed", 2, nil, nil},
		{"retry 1 2 --file " + corrected, 2, nil, nil},
		{"retry 1 --kind nonsense", 2, nil, nil},
		{
			"retry 3 --file " + corrected, 0,
			[]string{"entry 3 is in the log again, at position 1"},
			nil,
		},
		{"retry 3", 1, nil, nil},
		{
			"retry --reason self-loop", 0,
			[]string{"entry 2 is in the log again, at position 2"},
			nil,
		},
		{"retry --reason self-loop", 0, nil, []string{"entry"}},
		{
			"retry 3 --again --kind prediction", 0,
			[]string{"entry 3 is in the log again, at position 3"},
			nil,
		},
		{
			"retry --reason self-loop --again", 0,
			[]string{"entry 2 is in the log again, at position 4"},
			nil,
		},
		{"list", 0, []string{"malformed"}, []string{"self-loop", "unknown-class"}},
		{"list --all", 0, []string{"malformed", "self-loop", "unknown-class"}, nil},
	} {
		args := append([]string{"quarantine"}, strings.Fields(c.args)...)
		code, out, diagnostics := runCommand(append(args, "--state", state)...)
		if code != c.code {
			t.Errorf("%s: exit code %d, want %d: %s", c.args, code, c.code, diagnostics)
		}
		for _, want := range c.out {
			if !strings.Contains(out, want) {
				t.Errorf("%s: %q is not in\n%s", c.args, want, out)
			}
		}
		for _, wrong := range c.wrong {
			if strings.Contains(out, wrong) {
				t.Errorf("%s: %q is in\n%s", c.args, wrong, out)
			}
		}
	}
	if _, out, _ := runCommand("quarantine", "show", "2", "--state", state); !json.Valid(
		[]byte(out),
	) {
		t.Errorf("show is not JSON: %s", out)
	}
	if _, out, _ := runCommand("quarantine", "show", "1", "--original", "--state",
		state); out != "\x1b[31mred\xff" {
		t.Errorf("show --original: %q", out)
	}
}

// A directory in use, and a missing one, must be refused with advice.
func TestQuarantineCommandNeedsAPlace(t *testing.T) {
	if code, _, _ := runCommand("quarantine", "list"); code != exitUsage {
		t.Errorf("no place: exit code %d", code)
	}
	state := fillQuarantine(t)
	b, err := config.OpenBroker(config.Settings{State: state}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	code, _, diagnostics := runCommand("quarantine", "list", "--state", state)
	if code != exitFailed || !strings.Contains(diagnostics, "--nats") {
		t.Errorf("directory in use: exit code %d, %s", code, diagnostics)
	}
}
