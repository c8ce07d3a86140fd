#!/usr/bin/env bash
# Copyright The Tantilium Cloud Runner Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Removes the platform from the cluster of KUBECONFIG, in an order that cannot hang: Tenants while the operator is there to take them
# down, then the operator, its policies and rights, the namespace, and the CRDs last. Can be run again at any time.
#   CONFIRM  delete-tenants: delete all Tenants, with everything in their CloudSpaces. Without it, Tenants stop the removal
#   TIMEOUT  how long to wait for the Tenants to go, in seconds; default 1800
set -euo pipefail
cd "$(dirname "$0")/.."

system=kubeopera-system
timeout=${TIMEOUT:-1800}

say() { printf '%s\n' "$*"; }
stop() { printf 'undeploy: %s\n' "$*" >&2; exit 1; }

served() { kubectl get crd "$1.tenancy.kubeopera.io" --ignore-not-found -o name | grep -q .; }

# customers lists what the operator must take down: Tenants, and CloudSpaces that are in nobody's namespace.
customers() {
  if served tenants; then kubectl get tenants.tenancy.kubeopera.io -o name; fi
  if served cloudspaces; then
    kubectl get cloudspaces.tenancy.kubeopera.io -A -o jsonpath='{range .items[*]}cloudspace {.metadata.namespace}/{.metadata.name}{"\n"}{end}'
  fi
}

protected() {
  local kind
  for kind in tenants cloudspaces; do
    if served $kind; then
      kubectl get $kind.tenancy.kubeopera.io -A \
        -o jsonpath='{range .items[?(@.spec.deletionProtection==true)]}{.kind} {.metadata.namespace}/{.metadata.name}{"\n"}{end}'
    fi
  done
}

operator_runs() { [ "$(kubectl -n $system get deployment tenant-controller --ignore-not-found -o jsonpath='{.status.availableReplicas}')" ]; }

progress() {
  kubectl get tenants.tenancy.kubeopera.io -o jsonpath='{range .items[*]}{"  "}{.metadata.name}: {.status.conditions[?(@.type=="Ready")].message}{"\n"}{end}' | head -20
}

# remove_view comes first: Kubernetes ends no namespace while an API service that it knows of does not answer.
remove_view() { kubectl delete apiservice v1alpha1.view.kubeopera.io --ignore-not-found; }

delete_customers() {
  local left names end=$((SECONDS + timeout)) shown=""
  remove_view
  kubectl delete tenants.tenancy.kubeopera.io --all --wait=false
  while left=$(customers) && [ -n "$left" ]; do
    [ $SECONDS -lt $end ] || stop "these are still there after ${timeout}s; docs/operations.md has the reasons. Nothing else was removed:
$left"
    # What is in no Tenant's namespace is not taken down with one.
    if [ -z "$(kubectl get tenants.tenancy.kubeopera.io -o name)" ]; then
      kubectl delete cloudspaces.tenancy.kubeopera.io -A --all --wait=false > /dev/null
    fi
    names=$(progress)
    if [ -n "$names" ] && [ "$names" != "$shown" ]; then
      say "$(wc -l <<< "$left") left"
      say "$names"
      shown=$names
    fi
    sleep 1
  done
}

remove_customers() {
  local found kept
  found=$(customers)
  [ -n "$found" ] || return 0
  [ "${CONFIRM:-}" = delete-tenants ] || stop "there are Tenants or CloudSpaces. To delete them, with all their data: make undeploy CONFIRM=delete-tenants
$found"
  kept=$(protected)
  [ -z "$kept" ] || stop "these are protected from deletion; set spec.deletionProtection to false first:
$kept"
  operator_runs || stop "the operator does not run, and only it can take Tenants down. Install it again with make deploy, or see docs/install.md, Without the operator:
$found"
  delete_customers
}

# remove_sources takes away the chart sources that all CloudSpaces shared.
remove_sources() {
  local kind
  for kind in helmcharts helmrepositories; do
    if kubectl get crd $kind.source.toolkit.fluxcd.io --ignore-not-found -o name | grep -q .; then
      kubectl -n $system delete $kind.source.toolkit.fluxcd.io -l tenancy.kubeopera.io/owner-uid=platform --ignore-not-found
    fi
  done
}

remove_customers
say 'Tenants: none'
remove_view
kubectl -n $system delete deployment tenant-controller --ignore-not-found --cascade=foreground --timeout=120s
remove_sources
for part in apiserver admission rbac auth manager core crd; do
  kubectl delete -k config/$part --ignore-not-found --timeout=300s
done
say 'The platform is gone. Flux stays: it was there before.'
