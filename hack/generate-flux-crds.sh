#!/bin/sh
# Copyright The Tantilium Cloud Runner Authors.
# SPDX-License-Identifier: Apache-2.0

# Writes charts/cloudspace-flux/crds from the Go types of Flux's API modules, at the versions that charts/go.mod names.
# Files of kinds that Flux no longer has disappear. Takes no arguments; run it after changing one of those versions.
set -eu

cd "$(dirname "$0")/../charts"
export CGO_ENABLED=0 GOFLAGS=-trimpath

generated=$(mktemp -d)
trap 'rm -rf "$generated"' EXIT

# Only the packages of the served versions: the older ones are marked as skipped upstream.
go tool -modfile=../hack/tools/go.mod controller-gen crd \
	paths=github.com/fluxcd/source-controller/api/v1 \
	paths=github.com/fluxcd/kustomize-controller/api/v1 \
	paths=github.com/fluxcd/helm-controller/api/v2 \
	output:crd:dir="$generated"

rm -rf cloudspace-flux/crds
mkdir -p cloudspace-flux/crds
cp "$generated"/*.yaml cloudspace-flux/crds/
