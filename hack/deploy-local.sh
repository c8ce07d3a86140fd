#!/usr/bin/env bash
# Copyright The Tantilium Cloud Runner Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Builds the commands, brings their images and the Flux chart into the local host cluster, and installs the platform there.
# Expects the environment that "hostcluster env" prints.
set -euo pipefail
cd "$(dirname "$0")/.."

hostcluster=.local/bin/hostcluster
commands=(tenant-controller auth-service kubeopera-api)

CGO_ENABLED=0 GOFLAGS=-trimpath go build -ldflags "-s -w" -o .local/bin/ "${commands[@]/#/./cmd/}"
.local/bin/tenant-controller preflight

# The tag names what is in the image: a changed binary rolls the Deployment, an unchanged one does not.
IMAGES=
for command in "${commands[@]}"; do
  image=ghcr.io/tantilium/$command:local-$(sha256sum ".local/bin/$command" | cut -c1-12)
  "$hostcluster" image load "$image" --entrypoint "[\"/$command\"]" ".local/bin/$command:/$command"
  IMAGES="$IMAGES $image"
done
"$hostcluster" chart push charts/cloudspace-flux

# What the OpenID provider proves itself with, to kube-apiserver and to people.
pki=.local/hostcluster/pki
kubectl apply --server-side --force-conflicts -f config/core/namespace.yaml > /dev/null
kubectl -n kubeopera-core create secret tls auth-service-tls --cert=$pki/auth-service.crt --key=$pki/auth-service.key --dry-run=client -o yaml |
  kubectl apply --server-side --force-conflicts -f - > /dev/null

export IMAGES PLATFORM_CONFIG=config/local/platform-config.yaml WITH=config/local/auth
hack/deploy.sh
