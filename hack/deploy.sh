#!/usr/bin/env bash
# Copyright The Tantilium Cloud Runner Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Installs the platform on the cluster of KUBECONFIG and waits until it runs.
#   IMAGE            image of tenant-controller, with its tag; default: as in config/manager
#   PLATFORM_CONFIG  file with the PlatformConfig; default: config/manager/platform-config.yaml
set -euo pipefail
cd "$(dirname "$0")/.."

overlay=.local/deploy
rm -rf "$overlay"
mkdir -p "$overlay"
cp "${PLATFORM_CONFIG:-config/manager/platform-config.yaml}" "$overlay/platform-config.yaml"
cat > "$overlay/kustomization.yaml" <<OVERLAY
resources: [../../config/default]
configMapGenerator:
- {name: tenant-controller, namespace: kubeopera-system, behavior: replace, files: [platform-config.yaml]}
OVERLAY
if [ -n "${IMAGE:-}" ]; then
  printf 'images:\n- {name: ghcr.io/tantilium/tenant-controller, newName: "%s", newTag: "%s"}\n' \
    "${IMAGE%:*}" "${IMAGE##*:}" >> "$overlay/kustomization.yaml"
fi

kubectl apply --server-side --force-conflicts -k "$overlay" > /dev/null
kubectl wait --for=condition=Established --timeout=60s \
  crd/tenants.tenancy.kubeopera.io crd/cloudspaces.tenancy.kubeopera.io crd/tenantquotas.tenancy.kubeopera.io > /dev/null
kubectl -n kubeopera-system rollout status deployment/tenant-controller --timeout=180s
kubectl -n kubeopera-core rollout status deployment/cloudspace-resolver --timeout=180s
