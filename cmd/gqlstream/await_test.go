package main

import (
	"context"
	"strings"
	"testing"
	"time"
)

// A command must wait for a server that is not up yet, say so once, and stop when its
// context ends. It must refuse an invalid address at once.
func TestServersAreWaitedFor(t *testing.T) {
	for url, want := range map[string]string{
		"nats://localhost:1":     "waiting for a server at nats://localhost:1\n",
		"nats://localhost:99999": "",
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 3*serverLookEvery)
		defer cancel()
		var said strings.Builder
		begun := time.Now()
		server := serverFlags{NATS: url}
		if err := server.AfterApply(); err != nil {
			t.Fatal(err)
		}
		if _, err := server.open(ctx, console{Err: &said}); err == nil {
			t.Fatal("there is a server")
		}
		if said.String() != want || (ctx.Err() != nil) != (want != "") {
			t.Errorf(
				"%s: waited %v (%v) and said %q, want %q", url, time.Since(begun), ctx.Err(),
				said.String(), want,
			)
		}
	}
}
