#!/usr/bin/env bash
# Copyright The Tantilium Cloud Runner Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Runs golangci-lint, with the one configuration of the repository, in every module.
set -euo pipefail
cd "$(dirname "$0")/.."

root=$PWD
lint=$root/.local/bin/golangci-lint
go -C hack/tools/lint build -o "$lint" github.com/golangci/golangci-lint/v2/cmd/golangci-lint
for module in . charts hack/hostcluster hack/images; do
  echo "lint $module"
  (cd "$module" && "$lint" run --config "$root/.golangci.yml" --build-tags e2e,soak ./...)
done
