#!/usr/bin/env bash
# Copyright The Tantilium Cloud Runner Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Installs an earlier revision of this repository on the local host cluster, with a CloudSpace that runs, goes on to the tree as it is,
# back, and on again. Fails when that starts anything of a control plane anew, changes a phase, or leaves an operator that does not work.
#   FROM  the earlier revision, such as a tag
# Expects the environment that "hostcluster env" prints.
set -euo pipefail
cd "$(dirname "$0")/.."

# Without the local host cluster's own sources the earlier tree counts as a part of this clone, and finds its cluster.
earlier=$PWD/.local/earlier
rm -rf "$earlier"
mkdir -p "$earlier/.local/bin"
git archive "${FROM:?names the revision to begin with}" -- . ':(exclude)hack/hostcluster' | tar -x -C "$earlier"
ln -s "$PWD/.local/bin/hostcluster" "$earlier/.local/bin/hostcluster"
ln -s "$PWD/.local/hostcluster" "$earlier/.local/hostcluster"

# standing is what must stay: control planes with their starts, phases and their history.
standing() {
  kubectl get pods -A -l release --sort-by=.metadata.uid -o 'jsonpath={range .items[*]}{.metadata.uid} {.metadata.name} {.status.containerStatuses[*].restartCount}{"\n"}{end}'
  kubectl get cloudspaces.tenancy.kubeopera.io,tenants -A -o 'jsonpath={range .items[*]}{.metadata.uid} {.metadata.name} {.status.phase} {.status.timeline[*].phase}{"\n"}{end}'
}

# works has the operator do something new, and look at the CloudSpace that runs.
works() {
  local asked
  asked=$(date +%s%N)
  kubectl annotate -n tenant-alice-default cloudspaces.tenancy.kubeopera.io/default "tenancy.kubeopera.io/retry-requested=$asked" --overwrite > /dev/null
  kubectl wait -n tenant-alice-default cloudspaces.tenancy.kubeopera.io/default --for=jsonpath='{.status.retry.lastHandledRequest}'="$asked" --timeout=2m > /dev/null
  kubectl apply -f - > /dev/null <<CLOUDSPACE
{apiVersion: tenancy.kubeopera.io/v1alpha1, kind: CloudSpace, metadata: {name: rests, namespace: tenant-alice-default}, spec: {suspend: true}}
CLOUDSPACE
  kubectl wait -n tenant-alice-default cloudspaces.tenancy.kubeopera.io/rests --for=jsonpath='{.status.phase}'=Suspended --timeout=2m > /dev/null
  kubectl delete -n tenant-alice-default cloudspaces.tenancy.kubeopera.io/rests --timeout=2m > /dev/null
  kubectl wait tenant/alice-default --for=condition=Ready --timeout=2m > /dev/null
}

# install [FOLDER] installs what the folder has, by default this tree.
install() { "${1:-.}/hack/deploy-local.sh" > /dev/null; }

install "$earlier"
kubectl apply -f config/samples/tenant.yaml > /dev/null
kubectl wait tenant/alice-default --for=condition=Ready --timeout=10m > /dev/null
before=$(standing)
printf 'stands with %s:\n%s\n' "$FROM" "$before"
for step in "on:." "back:$earlier" "on again:."; do
  install "${step#*:}"
  works
  diff <(echo "$before") <(standing) || { echo "going ${step%%:*} changed what stood (<) to (>)" >&2; exit 1; }
  echo "went ${step%%:*}: all stands as it did"
done
