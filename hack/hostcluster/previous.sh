#!/usr/bin/env bash
# Copyright The Tantilium Cloud Runner Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Builds the minor version of Kubernetes before the host cluster's, as far as a CloudSpace needs it, and brings it into the running
# cluster under the image name that vCluster asks for. With "version" it only prints which version that is.
set -euo pipefail
cd "$(dirname "$0")"

version=$(go -C previous list -m -f '{{.Version}}' k8s.io/kubernetes)
[ "${1:-}" = version ] && { echo "$version"; exit; }

root=$PWD/../..
folder=$root/.local/kubernetes-$version
mkdir -p "$folder"
echo "building Kubernetes $version (five minutes on two cores if Go has compiled none of it before)"
package=k8s.io/component-base/version
minor=${version#v1.}
CGO_ENABLED=0 GOFLAGS=-trimpath go -C previous build -o "$folder/kube" -ldflags \
  "-s -w -X $package.gitVersion=$version -X $package.gitMajor=1 -X $package.gitMinor=${minor%%.*} -X $package.gitTreeState=clean" .
files=("$folder/kube:/kubernetes/kube")
for command in kube-apiserver kube-controller-manager kube-scheduler; do
  # A script, not a link: copying a link over one that is there fails, as when the init container runs again.
  printf '#!/bin/sh\nexec "${0%%/*}/kube" %s "$@"\n' "$command" > "$folder/$command"
  chmod +x "$folder/$command"
  files+=("$folder/$command:/kubernetes/$command")
done
"$root/.local/bin/hostcluster" image load "ghcr.io/loft-sh/kubernetes:$version" --shell "${files[@]}"
