#!/usr/bin/env bash
# Copyright The Tantilium Cloud Runner Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Writes everything that is generated from the types in apis/ and the RBAC markers in controllers/:
# deepcopy, CRDs, the operator's role, apply configurations, clientset, listers, informers and the API reference.
set -euo pipefail
cd "$(dirname "$0")/.."

module=github.com/tantilium/cloud-runner
tenancy=$module/apis/tenancy/v1alpha1
view=$module/apis/view/v1alpha1
client=$module/apis/client
header=hack/boilerplate.go.txt

tool() { go tool -modfile=hack/tools/go.mod "$@"; }

tool controller-gen object:headerFile=$header paths=./apis/...
tool controller-gen crd paths=./apis/tenancy/... output:crd:dir=config/crd
# Definitions of the view's resources, which are never installed: kubeopera-api describes them by these.
tool controller-gen crd paths=./apis/view/... output:crd:dir=apiserver/schema
tool controller-gen rbac:roleName=tenant-controller paths=./controllers/... output:rbac:dir=config/rbac

rm -rf apis/client
tool applyconfiguration-gen --go-header-file $header \
  --output-pkg $client/applyconfiguration --output-dir apis/client/applyconfiguration $tenancy $view
tool client-gen --go-header-file $header --clientset-name versioned --input-base "" --input $tenancy --input $view \
  --apply-configuration-package $client/applyconfiguration \
  --output-pkg $client/clientset --output-dir apis/client/clientset
tool lister-gen --go-header-file $header --output-pkg $client/listers --output-dir apis/client/listers $tenancy $view
tool informer-gen --go-header-file $header --versioned-clientset-package $client/clientset/versioned \
  --listers-package $client/listers --output-pkg $client/informers --output-dir apis/client/informers $tenancy $view

tool crd-ref-docs --config hack/api-reference.yaml --source-path apis --renderer markdown \
  --output-path docs/api-reference.md
