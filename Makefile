# `make demo` shows what gqlstream does; `make test` shows that it does it.

GO        ?= go
TOOLS     := $(or $(shell $(GO) env GOBIN),$(shell $(GO) env GOPATH)/bin)
GOFUMPT   := 0.12.0
STATIC    := 0.8.2
CYCLONEDX := 1.10.0
FUZZTIME  ?= 30s
BENCHTIME ?= 1s
CASES     := coraml citeseer musae_twitch icwsm_political

# Tests that need the real graphs (GQLSTREAM_DATA, or ../shared/data), Chromium, or
# Python with the packages of its examples run where these are; a line says so where
# they are not. Name the TAGS to insist: make test TAGS="data browser python" fails without them.
DATA      := $(or $(GQLSTREAM_DATA),$(wildcard ../shared/data))
CHROMIUM  := $(or $(CHROMIUM),$(shell command -v chromium || \
	command -v chromium-browser || command -v google-chrome))
PYTHON    ?= python3
export PYTHON
PACKAGES  := nats pyarrow pandas nbclient ipykernel
PYTHONS   := $(shell $(PYTHON) -c 'import importlib.util as u; \
	all(map(u.find_spec, "$(PACKAGES)".split())) and print("yes")' 2>/dev/null)
TAGS      ?= $(if $(DATA),data) $(if $(CHROMIUM),browser) $(if $(PYTHONS),python)

.PHONY: build install dist image image-test units-test kubernetes-test test race announce check
.PHONY: tools demo bench fuzz faults load soak cases clean

# The version is the tag of the checkout, or its commit.
VERSION   ?= $(or $(shell git describe --tags --always --dirty 2>/dev/null),devel)
STAMP     := -s -w -X main.stampedVersion=$(VERSION)
PLATFORMS ?= linux/amd64 linux/arm64 darwin/amd64 darwin/arm64
PREFIX    ?= /usr/local

build:
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags "$(STAMP)" -o bin/gqlstream ./cmd/gqlstream

install: build
	install -d "$(DESTDIR)$(PREFIX)/bin"
	install -m 755 bin/gqlstream "$(DESTDIR)$(PREFIX)/bin/gqlstream"

# The artefacts of a release: archives, Debian packages, bills of materials, the Python package and
# their checksums. The same checkout and release of Go give the same bytes.
dist:
	@$(TOOLS)/cyclonedx-gomod version 2>/dev/null | grep -q '$(CYCLONEDX)' || \
		$(GO) install github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v$(CYCLONEDX)
	GO="$(GO)" VERSION="$(VERSION)" SBOM_TOOL="$(TOOLS)/cyclonedx-gomod" .ci/dist $(PLATFORMS)

# The image of the Dockerfile; CONTAINERS is docker or podman.
CONTAINERS ?= docker
image:
	$(CONTAINERS) build --build-arg VERSION=$(VERSION) \
		--build-arg REVISION=$(shell git rev-parse HEAD 2>/dev/null) --tag gqlstream:$(VERSION) .

# The image and the compositions with podman and runc, and the units in a Debian tree that boots; as
# root, with the packages that .ci/run names. A line says so where this machine cannot.
image-test: build
	.ci/image-test

units-test: build
	.ci/units-test

kubernetes-test:
	.ci/kubernetes-test

# RERUN=1 runs up to three failed tests once more by themselves and says which: for
# machines that stall. A data race fails at once.
GOTESTSUM := 1.13.0
run_tests = $(if $(RERUN),$(TOOLS)/gotestsum --format pkgname --rerun-fails=1 \
	--rerun-fails-max-failures=3 --rerun-fails-abort-on-data-race --packages="$(1)" -- $(2),\
	$(GO) test $(2) $(1))

test: announce
	$(call run_tests,./...,-tags "$(TAGS)" -timeout 20m)

# The race detector makes everything ten times slower. It runs the packages that start
# goroutines, without the tests on real graphs, in a browser and of Python, which would
# wait for numbers and other programs.
RACED     := ./cmd/... ./examples/bluesky ./pipeline/group ./incremental ./ingest \
	./ingest/broker ./pipeline ./sinks/...

# Tests of whole simulated networks are left out: they take minutes there, and run the same code as
# the tests of small histories.
race:
	$(call run_tests,$(RACED),-race -timeout 45m -skip OfNetworks)

announce:
	@$(if $(filter data,$(TAGS)),,\
		echo "without the tests on real graphs: set GQLSTREAM_DATA to their folder")
	@$(if $(filter browser,$(TAGS)),,echo "without the tests in a browser: install Chromium")
	@$(if $(filter python,$(TAGS)),,echo "without the tests of the Python examples: pip install" \
		"nats-py pyarrow pandas nbclient ipykernel; PYTHON names the interpreter")

# Formatting, vet and staticcheck; fails on the first thing found.
check: tools
	@files="$$($(TOOLS)/gofumpt -l .)"; \
	if [ -n "$$files" ]; then echo "not gofumpt-formatted:"; echo "$$files"; exit 1; fi
	$(GO) vet -tags "data browser python" ./...
	$(TOOLS)/staticcheck -tags "data browser python" ./...

tools:
	@$(TOOLS)/gofumpt --version 2>/dev/null | grep -q '$(GOFUMPT)' || \
		$(GO) install mvdan.cc/gofumpt@v$(GOFUMPT)
	@$(TOOLS)/staticcheck -version 2>/dev/null | grep -q '$(STATIC)' || \
		$(GO) install honnef.co/go/tools/cmd/staticcheck@v$(STATIC)
	@$(TOOLS)/gotestsum --version 2>/dev/null | grep -q '$(GOTESTSUM)' || \
		$(GO) install gotest.tools/gotestsum@v$(GOTESTSUM)

demo: build
	bin/gqlstream demo $(DEMO)

# Those of ./lab/bench make networks of millions of edges: some minutes, 4 GB of memory, 2 GB of
# disk.
bench:
	$(GO) test -run '^$$' -bench . -benchmem -benchtime $(BENCHTIME) -timeout 4h ./...

# Every fuzz target of every package for FUZZTIME.
fuzz:
	@set -e; for package in $$($(GO) list ./...); do \
		for target in $$($(GO) test -list '^Fuzz' $$package | grep '^Fuzz' || true); do \
			echo "== $$package $$target"; \
			$(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) $$package; \
		done; \
	done

# The long campaigns behind docs/reliability.md. KILLS of the real process; FAULTS of a cluster of
# three servers with clocks that can be bent and a run on it; GROUPFAULTS of such a cluster and a
# group; WORKERLOGS that one, two and four workers read; RUBBISH in megabytes; broken HISTORIES of
# each kind; DAMAGES of stored files; REPLICADAMAGES of one of three copies; FULLDISKS under a live
# run; POWERCUTS on the file system LAZYFS, a program that .ci/lazyfs builds; SOURCEFAULTS are runs
# of a broker with random faults;
# SOAK is the number of events of the soak of the core, SOAKSECONDS the length of that of a run.
KILLS     ?= 300
FAULTS    ?= 300
GROUPFAULTS ?= 540
RUBBISH   ?= 1000
HISTORIES ?= 100
DAMAGES   ?= 1000
REPLICADAMAGES ?= 100
FULLDISKS ?= 100
POWERCUTS ?= 100
LAZYFS    ?=
WORKERLOGS ?= 100
SOURCEFAULTS ?= 100000
SOAK      ?= 10000000
SOAKSECONDS ?= 7200

CAMPAIGNS := TestKilledRuns|TestGroupPublishes|TestAnyNumberOfWorkers|TestRubbish
CAMPAIGNS := $(CAMPAIGNS)|TestBrokenHistories|TestDamage|TestADamagedHeader|TestMissingMiddle
CAMPAIGNS := $(CAMPAIGNS)|TestRunOutlivesAFullDisk

faults:
	.ci/clock-test
	GQLSTREAM_FAULTS=$(FAULTS) GQLSTREAM_CLOCKS=1 $(GO) test -overlay bin/.clock/overlay.json \
		-count 1 -timeout 6h -v -run TestClusterFaults ./cmd/gqlstream
	GQLSTREAM_KILLS=$(KILLS) GQLSTREAM_GROUP_FAULTS=$(GROUPFAULTS) \
		GQLSTREAM_WORKER_LOGS=$(WORKERLOGS) GQLSTREAM_RUBBISH=$(RUBBISH) \
		GQLSTREAM_HISTORIES=$(HISTORIES) GQLSTREAM_DAMAGES=$(DAMAGES) \
		GQLSTREAM_REPLICA_DAMAGES=$(REPLICADAMAGES) \
		GQLSTREAM_FULLDISKS=$(FULLDISKS) $(GO) test -count 1 -timeout 6h -v \
		-run '$(CAMPAIGNS)' ./cmd/gqlstream ./ingest
	GQLSTREAM_LAZYFS=$(LAZYFS) GQLSTREAM_POWERCUTS=$(POWERCUTS) \
		$(GO) test -count 1 -timeout 6h -v -run TestPowerCuts ./cmd/gqlstream
	GQLSTREAM_SOURCEFAULTS=$(SOURCEFAULTS) \
		$(GO) test -count 1 -timeout 4h -v -run TestSourceFaults ./ingest
	GQLSTREAM_RESTARTS=1000 \
		$(GO) test -count 1 -timeout 4h -v -run TestRestartsOfNetworks ./incremental
	GQLSTREAM_DISKFAULTS=2000 GQLSTREAM_CORRUPTIONS=100000 $(GO) test -count 1 -timeout 2h -v \
		-run 'TestEveryFault|TestRandomDamage' ./internal/checkpoint

# Rubbish beside 1,000 pages and 10,000 communities, behind docs/api.md.
load:
	GQLSTREAM_CAMPAIGN=5m \
		$(GO) test -count 1 -timeout 30m -v -run TestServerOutlivesRubbish ./sinks/web

soak:
	GQLSTREAM_SOAK_SECONDS=$(SOAKSECONDS) \
		$(GO) test -count 1 -timeout 4h -v -run TestSoakOfARun ./cmd/gqlstream
	GQLSTREAM_SOAK=$(SOAK) \
		$(GO) test -count 1 -timeout 4h -v -run TestSoakDoesNotGrow ./incremental
	GQLSTREAM_POSTERIORS=1000 \
		$(GO) test -count 1 -timeout 1h -v -run TestPosteriorsAndEstimates ./incremental

# The reference cases, where they lie beside the project.
cases: build
	@set -e; for c in $(CASES); do \
		echo "== $$c"; \
		../shared/tools/check_cases bin/gqlstream ../shared/cases/$$c ../shared/data/$$c; \
	done

clean:
	rm -rf bin dist
