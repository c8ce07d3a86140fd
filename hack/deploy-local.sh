#!/usr/bin/env bash
# Copyright The Tantilium Cloud Runner Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Builds the controller, brings its image and the Flux chart into the local host cluster, and installs the platform there.
# Expects the environment that "hostcluster env" prints.
set -euo pipefail
cd "$(dirname "$0")/.."

hostcluster=.local/bin/hostcluster
binary=.local/bin/tenant-controller

CGO_ENABLED=0 GOFLAGS=-trimpath go build -ldflags "-s -w" -o "$binary" ./cmd/tenant-controller
"$binary" preflight

# The tag names what is in the image: a changed binary rolls the Deployment, an unchanged one does not.
IMAGE=ghcr.io/tantilium/tenant-controller:local-$(sha256sum "$binary" | cut -c1-12)
export IMAGE PLATFORM_CONFIG=config/local/platform-config.yaml
"$hostcluster" image load "$IMAGE" --entrypoint '["/tenant-controller"]' "$binary:/tenant-controller"
"$hostcluster" chart push charts/cloudspace-flux
hack/deploy.sh
