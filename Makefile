# Copyright The Tantilium Cloud Runner Authors.
# SPDX-License-Identifier: Apache-2.0

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# The same flags in every module: they are part of the build cache's key, and the modules share most of what is compiled.
export CGO_ENABLED := 0
export GOFLAGS := -trimpath

HOSTCLUSTER := .local/bin/hostcluster
# What a cluster's own shell would have: KUBECONFIG, PATH, KUBEBUILDER_ASSETS, HOSTCLUSTER_*.
IN_CLUSTER := eval "$$($(HOSTCLUSTER) env)" &&

# go test that says at its end once more what failed, and why: where long output is cut, its end is what is left.
GOTESTSUM := go tool -modfile=hack/tools/go.mod gotestsum --format standard-verbose --

##@ The two commands

.PHONY: demo
demo: $(HOSTCLUSTER) ## From a bare machine to a Tenant with a CloudSpace that works
	@$(HOSTCLUSTER) up
	@$(IN_CLUSTER) hack/deploy-local.sh
	@$(IN_CLUSTER) hack/demo.sh

.PHONY: test
test: test-unit test-integration test-e2e ## All tests

##@ Tests

.PHONY: test-unit
test-unit: ## Tests that need nothing but Go
	go test ./apis/... ./apiserver/... ./cmd/... ./controllers/... ./internal/...
	go -C hack/hostcluster test ./...
	go -C hack/images test ./...

.PHONY: test-integration
test-integration: $(HOSTCLUSTER) ## The controllers on a real kube-apiserver and etcd; the charts; the values against vCluster itself
	@$(HOSTCLUSTER) build
	@# Go does not see that config/, which is read before the tests begin, has changed.
	@$(IN_CLUSTER) go test -count=1 -timeout 20m ./test/integration/... ./test/view/...
	@$(IN_CLUSTER) go -C charts test ./...
	@$(IN_CLUSTER) go -C hack/hostcluster/tools test ./values/...

.PHONY: test-e2e
test-e2e: $(HOSTCLUSTER) ## The journeys on the local host cluster, with real Flux and vCluster
	@$(HOSTCLUSTER) up
	@$(IN_CLUSTER) hack/deploy-local.sh
	@hack/hostcluster/previous.sh
	@$(IN_CLUSTER) HOSTCLUSTER=$(abspath $(HOSTCLUSTER)) PREVIOUS_KUBERNETES=$$(hack/hostcluster/previous.sh version) $(GOTESTSUM) -tags e2e -count=1 -parallel 8 -timeout 45m ./test/e2e/...

.PHONY: test-upgrade
test-upgrade: $(HOSTCLUSTER) ## From an earlier revision, FROM, to this one on the local host cluster, back, and on again: nothing is started anew
	@test -n "$(FROM)" || { echo "FROM=<tag or commit> names the revision to begin with" >&2; exit 2; }
	@$(HOSTCLUSTER) up
	@$(IN_CLUSTER) FROM=$(FROM) hack/test-upgrade.sh

FUZZTIME ?= 1m
FUZZ := internal/names:FuzzHostNamesAreReversible internal/names:FuzzHostNamesAreOneToOne \
  controllers/cloudspace:FuzzRebuildKubeconfig controllers/cloudspace:FuzzJudge controllers/cloudspace:FuzzReconcile controllers/cloudspace:FuzzQuotas \
  controllers/tenant:FuzzReconcile internal/quota:FuzzLedger

.PHONY: fuzz
fuzz: ## Fuzz host names, kubeconfigs, what Flux says, quotas, ledgers, and the reconcilers: FUZZTIME each, one minute by default
	@for target in $(FUZZ); do \
	  go test ./$${target%:*} -run '^$$' -fuzz "^$${target#*:}$$" -fuzztime $(FUZZTIME); \
	done

.PHONY: race
race: $(HOSTCLUSTER) ## Unit tests and those of the view with the race detector, which needs a C compiler
	@command -v $${CC:-gcc} > /dev/null || { echo "the race detector needs a C compiler: apt-get install gcc libc6-dev" >&2; exit 2; }
	CGO_ENABLED=1 go test -race ./apis/... ./apiserver/... ./cmd/... ./controllers/... ./internal/...
	@$(HOSTCLUSTER) build
	@$(IN_CLUSTER) CGO_ENABLED=1 go test -race -count=1 -timeout 20m ./test/view

.PHONY: stress
stress: ## Unit tests many times over, in random order, to find those that do not always pass: COUNT times, 100 by default
	go test -count=$(or $(COUNT),100) -shuffle=on -skip '^Fuzz' -timeout 6h ./internal/... ./controllers/...

.PHONY: bench-restart
bench-restart: $(HOSTCLUSTER) ## A new operator on a cluster with many CloudSpaces: time, memory, requests. CLOUDSPACES, 10000 by default
	@$(HOSTCLUSTER) build
	@$(IN_CLUSTER) go test ./test/integration -run '^TestANewOperatorOfMany$$' -count=1 -v -timeout 3h -cloudspaces $(or $(CLOUDSPACES),10000)

.PHONY: bench-provision
bench-provision: $(HOSTCLUSTER) ## Time a CloudSpace against a bare helm install of the same values, and print the ratio
	@$(HOSTCLUSTER) up
	@$(IN_CLUSTER) hack/deploy-local.sh
	@$(IN_CLUSTER) hack/bench-provision.sh

.PHONY: bench-view
bench-view: $(HOSTCLUSTER) ## Listing CloudSpaces of the view against listing what is stored
	@$(HOSTCLUSTER) build
	@$(IN_CLUSTER) go test ./test/view -run '^$$' -bench . -benchtime 3s -count 3

.PHONY: soak
soak: $(HOSTCLUSTER) ## CloudSpaces made, broken and deleted while operator, Flux and API server are killed. SOAK_DURATION, an hour by default; SOAK_SEED
	@$(HOSTCLUSTER) up
	@$(IN_CLUSTER) hack/deploy-local.sh
	@$(IN_CLUSTER) HOSTCLUSTER=$(abspath $(HOSTCLUSTER)) go test -tags soak ./test/soak -count=1 -v -timeout 3h

##@ The local host cluster

.PHONY: up
up: $(HOSTCLUSTER) ## Build what is missing, start the cluster, install the platform, and sign alice, bob and root in: .local/*.kubeconfig
	@$(HOSTCLUSTER) up
	@$(IN_CLUSTER) hack/deploy-local.sh
	@$(IN_CLUSTER) hack/sign-in-local.sh

.PHONY: down
down: $(HOSTCLUSTER) ## End the cluster and remove all of it
	@$(HOSTCLUSTER) down
	@rm -f .local/*.kubeconfig .local/*.session .local/*.password

.PHONY: status
status: $(HOSTCLUSTER) ## Say what runs
	@$(HOSTCLUSTER) status

.PHONY: env
env: $(HOSTCLUSTER) ## Print KUBECONFIG and PATH for a shell: eval "$(make -s env)"
	@$(HOSTCLUSTER) env

.PHONY: kubeconfig
kubeconfig: $(HOSTCLUSTER) ## Write the kubeconfig of a CloudSpace for this machine: make kubeconfig NAME=alice-default
	@[ -n "$(NAME)" ] || { echo "which CloudSpace? make kubeconfig NAME=alice-default" >&2; exit 2; }
	@$(HOSTCLUSTER) kubeconfig $(NAME) -o .local/$(NAME).kubeconfig && echo .local/$(NAME).kubeconfig

.PHONY: deploy-local
deploy-local: $(HOSTCLUSTER) ## Build the commands and install the platform on the local host cluster
	@$(IN_CLUSTER) hack/deploy-local.sh

##@ Any cluster

# VERSION is the tag of images. A tree with changes has it in its name: only a commit gives the same bytes again.
VERSION ?= $(shell git describe --tags --always --dirty)
PLATFORMS ?= linux/amd64,linux/arm64

.PHONY: images
images: ## Build the images for REGISTRY (host/path) into .local/images, for PLATFORMS; PUSH=true pushes them
	@[ -n "$(REGISTRY)" ] || { echo "which registry? make images REGISTRY=ghcr.io/tantilium [PUSH=true]" >&2; exit 2; }
	@go -C hack/images run . --registry $(REGISTRY) --version $(VERSION) --revision $$(git rev-parse HEAD) --created $$(git log -1 --format=%ct) \
	  --platforms $(PLATFORMS) --folder $(abspath .local/images) --push=$(or $(PUSH),false) $(notdir $(wildcard cmd/*))

.PHONY: deploy
deploy: preflight ## Install on the cluster of KUBECONFIG, after checking it. IMAGE and PLATFORM_CONFIG replace the defaults
	@hack/deploy.sh

.PHONY: undeploy
undeploy: ## Remove the platform from the cluster of KUBECONFIG. CONFIRM=delete-tenants deletes all Tenants first
	@hack/undeploy.sh

.PHONY: preflight
preflight: ## Check whether the cluster of KUBECONFIG can be a host cluster
	@go run ./cmd/tenant-controller preflight --config $${PLATFORM_CONFIG:-config/manager/platform-config.yaml}

.PHONY: support-bundle
support-bundle: ## Collect the platform's state and logs without secrets; TENANT=id for one tenant
	@go run ./cmd/tenant-controller support-bundle $(if $(TENANT),--tenant $(TENANT))

##@ Development

.PHONY: generate
generate: ## Write what is generated: deepcopy, CRDs, RBAC, clients, API reference, the CRDs of Flux, dist/install.yaml
	hack/generate.sh
	hack/generate-install.sh
	hack/generate-flux-crds.sh

.PHONY: lint
lint: ## Run golangci-lint on every module
	hack/lint.sh

.PHONY: verify
verify: $(HOSTCLUSTER) ## Regenerate, check, and fail if anything differs
	hack/verify.sh

.PHONY: build
build: ## Build the commands into .local/bin
	go build -ldflags "-s -w" -o .local/bin/ ./cmd/...

.PHONY: help
help: ## Show this
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z0-9-]+:.*## / {printf "  %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: $(HOSTCLUSTER)
$(HOSTCLUSTER):
	@go -C hack/hostcluster build -o $(abspath $@) .
