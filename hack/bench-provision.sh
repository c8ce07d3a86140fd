#!/usr/bin/env bash
# Copyright The Tantilium Cloud Runner Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Times the way to a running control plane twice, each time from nothing: a CloudSpace up to its condition ControlPlaneReady,
# and a bare "helm install --wait" of the same chart with the very same values. Prints both and their ratio.
#   ROUNDS  how many pairs, taken in turn; default 3
# Expects the environment that "hostcluster env" prints, and the platform installed.
set -euo pipefail
cd "$(dirname "$0")/.."

rounds=${ROUNDS:-3}
id=bench
work=$(mktemp -d)
trap 'kubectl delete tenant $id --ignore-not-found --wait=false > /dev/null; rm -rf "$work"' EXIT

now() { date +%s.%N; }
since() { awk -v a="$1" -v b="$(now)" 'BEGIN {printf "%.1f", b - a}'; }

cloudspace() {
  local began
  began=$(now)
  printf 'apiVersion: tenancy.kubeopera.io/v1alpha1\nkind: Tenant\nmetadata: {name: %s}\n' "$id" | kubectl apply -f - > /dev/null
  kubectl wait --for=create --timeout=60s -n "tenant-$id" cloudspaces.tenancy.kubeopera.io/default > /dev/null
  kubectl wait --for=condition=ControlPlaneReady --timeout=600s -n "tenant-$id" cloudspaces.tenancy.kubeopera.io/default > /dev/null
  since "$began"
}

# The values are those of the HelmRelease; only the names differ.
values() {
  kubectl -n kubeopera-system get helmrelease "$id" -o jsonpath='{.spec.values}' | sed "s/$id/bare/g" > "$work/values.json"
}

# The names and ends of host namespaces are the operator's.
as_operator() { kubectl --as=system:serviceaccount:kubeopera-system:tenant-controller --as-group=system:masters "$@"; }

bare() {
  local began
  began=$(now)
  as_operator create namespace vcluster-bare > /dev/null
  helm install bare "$HOSTCLUSTER_CACHE/charts/vcluster-0.36.1.tgz" -n vcluster-bare -f "$work/values.json" --wait --timeout 10m > /dev/null
  since "$began"
}

for round in $(seq "$rounds"); do
  ours=$(cloudspace)
  values
  kubectl delete tenant "$id" --timeout=300s > /dev/null
  theirs=$(bare)
  helm uninstall bare -n vcluster-bare > /dev/null
  as_operator delete namespace vcluster-bare --timeout=300s > /dev/null
  echo "$ours $theirs" >> "$work/times"
  printf 'round %d: CloudSpace to ControlPlaneReady %ss, bare helm install %ss\n' "$round" "$ours" "$theirs"
done
awk '{a += $1; b += $2} END {printf "mean: %.1fs and %.1fs, ratio %.2f\n", a / NR, b / NR, a / b}' "$work/times"
