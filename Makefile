# renderer: `make` lists the targets.

GO ?= go
BIN := bin/renderer
VERSION ?=
LDFLAGS := -s -w $(if $(VERSION),-X main.version=$(VERSION))

# The race detector needs a C compiler; without one the tests still run. At its end a
# program with the detector sleeps a second unless it is told not to.
RACE := $(if $(shell command -v $$($(GO) env CC) 2>/dev/null),-race)

.DEFAULT_GOAL := help
.PHONY: help build test lint demo bench golden fuzz components integration tidy image clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## build bin/renderer
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o $(BIN) ./cmd/renderer

test: ## run the tests, hermetic, with the race detector
	@$(if $(RACE),:,echo "no C compiler found: testing without the race detector")
	GORACE=atexit_sleep_ms=0 $(GO) test $(RACE) -short -timeout 10m ./...

lint: ## check format, vet and staticcheck
	@files=$$(gofmt -l $$(git ls-files '*.go' 2>/dev/null || find . -name '*.go')); \
	if [ -n "$$files" ]; then echo "gofmt -w these files:"; echo "$$files"; exit 1; fi
	$(GO) vet ./...
	$(GO) tool staticcheck ./...
	check=$$($(GO) tool -n staticcheck) && cd integration && $(GO) vet ./... && $$check ./...

demo: build ## show the product at work: no network, account or cluster needed
	./$(BIN) demo

# Work trees of 300,000 files take minutes to set up, so those are for LARGE=1.
bench: ## measure, as ratios taken side by side in one run (LARGE=1: also on 300,000 files)
	$(GO) test -run '^$$' -bench BuildProcess -benchtime 1x -timeout 30m ./cmd/renderer
	$(GO) test -run '^$$' -bench 'Writer|Contention' -benchtime 1x -timeout 90m ./pkg/gitwriter $(if $(LARGE),-args -large)
	$(GO) test -run '^$$' -bench History10000 -benchtime 1x -timeout 30m ./internal/audit
	$(GO) test -run '^$$' -bench 'Build$$|Layout|Lock' -benchtime 3x ./pkg/expand
	$(GO) test -run '^$$' -bench 'Parse10kInputs|ReadAfterOneChange' -benchtime 3x ./pkg/api ./pkg/source
	$(GO) test -run '^$$' -bench Polls -benchtime 1x ./pkg/source/github ./pkg/source/gitlab ./pkg/source/gitea

golden: ## rewrite the golden files; read the diff afterwards
	$(GO) test ./pkg/expand -update

FUZZTIME ?= 20s
fuzz: ## run every fuzz test for FUZZTIME
	@for p in $$($(GO) list ./...); do \
	  for f in $$($(GO) test -list '^Fuzz' $$p | grep '^Fuzz'); do \
	    $(GO) test -run '^$$' -fuzz "^$$f$$" -fuzztime $(FUZZTIME) $$p || exit 1; \
	  done; \
	done

# Versions are in the go.mod of each folder. The first time takes long (the sources of
# five servers); afterwards Go's build cache has all of it. Gitea needs C for sqlite.
components: ## build what the integration tests run against: etcd, the API server, Flux, Gitea
	cd integration/flux && CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-s -w' -o ../bin/ ./etcd ./kube-apiserver tool
	cd integration/gitea && CGO_ENABLED=1 $(GO) build -trimpath -tags sqlite,sqlite_unlock_notify \
	  -ldflags "-s -w -X main.Version=$$($(GO) list -m -f '{{.Version}}' code.gitea.io/gitea | tr -d v)" -o ../bin/ tool

integration: build components ## run the slow tests, and the black-box ones against real Git servers and a real Flux
	$(GO) test -count 1 -timeout 15m ./internal/reconcile ./internal/audit ./pkg/expand ./pkg/gitwriter
	$(GO) test -count 1 -run 'TestScripts|TestReadme' ./cmd/renderer
	cd deploy/image && $(GO) vet ./... && $(GO) test -count 1 ./...
	cd integration && $(GO) test -count 1 -timeout 40m ./...

# The modules below integration require what the product requires, so they follow it.
tidy: ## bring go.mod and go.sum of all modules up to date
	for dir in . deploy/image $$(find integration -name go.mod -exec dirname {} +); do (cd $$dir && $(GO) mod tidy) || exit 1; done

TAG ?=
image: build ## assemble the container image as an OCI layout in dist/image, without a container engine
	cd deploy/image && $(GO) run . -binary ../../$(BIN) -out ../../dist/image -tag '$(TAG)'

clean: ## remove what was built
	rm -rf bin dist integration/bin
