# `make demo` shows what gqlstream does; `make test` shows that it does it.

GO        ?= go
TOOLS     := $(or $(shell $(GO) env GOBIN),$(shell $(GO) env GOPATH)/bin)
GOFUMPT   := 0.12.0
STATIC    := 0.8.2
FUZZTIME  ?= 30s
BENCHTIME ?= 1s
CASES     := coraml citeseer musae_twitch icwsm_political

# Tests that need the real graphs (GQLSTREAM_DATA, or ../shared/data) and tests
# that need Chromium run where these are; a line says so where they are not. Name
# the TAGS to insist: make test TAGS="data browser" fails without them.
DATA      := $(or $(GQLSTREAM_DATA),$(wildcard ../shared/data))
CHROMIUM  := $(or $(CHROMIUM),$(shell command -v chromium || command -v chromium-browser || command -v google-chrome))
TAGS      ?= $(if $(DATA),data) $(if $(CHROMIUM),browser)

.PHONY: build test race announce check tools demo bench fuzz faults load soak cases clean

build:
	CGO_ENABLED=0 $(GO) build -trimpath -o bin/gqlstream ./cmd/gqlstream

test: announce
	$(GO) test -tags "$(TAGS)" -timeout 10m ./...

race: announce
	$(GO) test -tags "$(TAGS)" -race -timeout 45m ./...

announce:
	@$(if $(filter data,$(TAGS)),,echo "without the tests on real graphs: set GQLSTREAM_DATA to their folder")
	@$(if $(filter browser,$(TAGS)),,echo "without the tests in a browser: install Chromium")

# Formatting, vet and staticcheck; fails on the first thing found.
check: tools
	@files="$$($(TOOLS)/gofumpt -l .)"; \
	if [ -n "$$files" ]; then echo "not gofumpt-formatted:"; echo "$$files"; exit 1; fi
	$(GO) vet -tags "data browser" ./...
	$(TOOLS)/staticcheck -tags "data browser" ./...

tools:
	@$(TOOLS)/gofumpt --version 2>/dev/null | grep -q '$(GOFUMPT)' || \
		$(GO) install mvdan.cc/gofumpt@v$(GOFUMPT)
	@$(TOOLS)/staticcheck -version 2>/dev/null | grep -q '$(STATIC)' || \
		$(GO) install honnef.co/go/tools/cmd/staticcheck@v$(STATIC)

demo: build
	bin/gqlstream demo $(DEMO)

bench:
	$(GO) test -run '^$$' -bench . -benchmem -benchtime $(BENCHTIME) ./...

# Every fuzz target of every package for FUZZTIME.
fuzz:
	@set -e; for package in $$($(GO) list ./...); do \
		for target in $$($(GO) test -list '^Fuzz' $$package | grep '^Fuzz' || true); do \
			echo "== $$package $$target"; \
			$(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) $$package; \
		done; \
	done

# The long campaigns behind docs/reliability.md. KILLS of the real process; broken
# HISTORIES of each kind; FULLDISKS under a live run; SOURCEFAULTS are runs of a broker
# that does what it may; events of the soak.
KILLS     ?= 300
HISTORIES ?= 100
FULLDISKS ?= 100
SOURCEFAULTS ?= 100000
SOAK      ?= 10000000

faults:
	GQLSTREAM_KILLS=$(KILLS) GQLSTREAM_HISTORIES=$(HISTORIES) GQLSTREAM_FULLDISKS=$(FULLDISKS) $(GO) test -count 1 -timeout 3h -v \
		-run 'TestKilledRuns|TestBrokenHistories|TestMissingMiddle|TestRunOutlivesAFullDisk' ./cmd/gqlstream ./ingest
	GQLSTREAM_SOURCEFAULTS=$(SOURCEFAULTS) $(GO) test -count 1 -timeout 4h -v -run TestSourceFaults ./ingest
	GQLSTREAM_DISKFAULTS=2000 GQLSTREAM_CORRUPTIONS=100000 $(GO) test -count 1 -timeout 2h -v \
		-run 'TestEveryFault|TestRandomDamage' ./checkpoint

# Rubbish beside 1,000 event streams and 10,000 communities, behind docs/api.md.
load:
	GQLSTREAM_CAMPAIGN=5m $(GO) test -count 1 -timeout 30m -v -run TestServerOutlivesRubbish ./sinks/web

soak:
	GQLSTREAM_SOAK=$(SOAK) $(GO) test -count 1 -timeout 4h -v -run TestSoakDoesNotGrow ./incremental

# The reference cases, where they lie beside the project.
cases: build
	@set -e; for c in $(CASES); do \
		echo "== $$c"; \
		../shared/tools/check_cases bin/gqlstream ../shared/cases/$$c ../shared/data/$$c; \
	done

clean:
	rm -rf bin
