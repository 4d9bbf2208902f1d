# `make demo` shows what gqlstream does; `make test` shows that it does it.

GO        ?= go
TOOLS     := $(or $(shell $(GO) env GOBIN),$(shell $(GO) env GOPATH)/bin)
GOFUMPT   := 0.12.0
STATIC    := 0.8.2
FUZZTIME  ?= 30s
BENCHTIME ?= 1s
CASES     := coraml citeseer musae_twitch icwsm_political

.PHONY: build test race check tools demo bench fuzz cases clean

build:
	CGO_ENABLED=0 $(GO) build -trimpath -o bin/gqlstream ./cmd/gqlstream

test:
	$(GO) test -timeout 10m ./...

race:
	$(GO) test -race -timeout 15m ./...

# Formatting, vet and staticcheck; fails on the first thing found.
check: tools
	@files="$$($(TOOLS)/gofumpt -l .)"; \
	if [ -n "$$files" ]; then echo "not gofumpt-formatted:"; echo "$$files"; exit 1; fi
	$(GO) vet ./...
	$(TOOLS)/staticcheck ./...

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

# The reference cases, where they lie beside the project.
cases: build
	@set -e; for c in $(CASES); do \
		echo "== $$c"; \
		../shared/tools/check_cases bin/gqlstream ../shared/cases/$$c ../shared/data/$$c; \
	done

clean:
	rm -rf bin
