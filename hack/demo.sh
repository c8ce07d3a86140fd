#!/usr/bin/env bash
# Copyright The Tantilium Cloud Runner Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Makes the Tenant of config/samples, shows each phase with its time, and runs a pod in its CloudSpace.
# Expects the environment that "hostcluster env" prints. Ends with 0 only when the pod ran.
set -euo pipefail
cd "$(dirname "$0")/.."

tenant=alice-default
deadline=$((SECONDS + 900))
kubeconfig=.local/$tenant.kubeconfig
inside() { kubectl --kubeconfig "$kubeconfig" "$@"; }

field() { kubectl get tenant "$tenant" -o jsonpath="$1{\"\\n\"}"; }

follow() {
  local began=$SECONDS shown="" phase message
  while :; do
    IFS='|' read -r phase message < <(field '{.status.phase}|{.status.conditions[?(@.type=="Ready")].message}')
    if [ -n "$phase" ] && [ "$phase" != "$shown" ]; then
      printf '%4ds  %-15s %s\n' $((SECONDS - began)) "$phase" "$message"
      shown=$phase
    fi
    [ "$phase" = Ready ] && return 0
    if [ $SECONDS -gt $deadline ]; then
      echo "Tenant $tenant is not Ready after 15 minutes:" >&2
      kubectl describe tenant "$tenant" >&2
      return 1
    fi
    sleep 0.5
  done
}

run_a_pod() {
  local image=registry.hostcluster.internal/probe:1
  inside delete pod hello --ignore-not-found --now > /dev/null
  inside run hello --image="$image" --restart=Never --command -- /bin/sh -c 'echo Hello from inside the CloudSpace' > /dev/null
  inside wait --for=jsonpath='{.status.phase}'=Succeeded --timeout=120s pod/hello > /dev/null
  inside logs hello
}

printf '\nTenant %s\n' "$tenant"
kubectl apply -f config/samples/tenant.yaml > /dev/null
follow
.local/bin/hostcluster kubeconfig "$tenant" -o "$kubeconfig"

printf '\n'
run_a_pod
cat <<NEXT

Ready. To go on, type:

  eval "\$(make -s env)"
  kubectl get tenants,cloudspaces -A
  kubectl --kubeconfig $kubeconfig get pods -A
NEXT
