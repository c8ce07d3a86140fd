#!/usr/bin/env bash
# Copyright The Tantilium Cloud Runner Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Installs the platform on the cluster of KUBECONFIG and waits until it runs.
#   IMAGE            image of tenant-controller, with its tag; default: as in config/manager
#   IMAGES           more images, with their tags, each for the command that its name ends with
#   PLATFORM_CONFIG  file with the PlatformConfig; default: config/manager/platform-config.yaml
#   WITH             folders to install beside config/default, such as one with your overlay of config/auth
set -euo pipefail
cd "$(dirname "$0")/.."

overlay=.local/deploy
rm -rf "$overlay"
mkdir -p "$overlay"
cp "${PLATFORM_CONFIG:-config/manager/platform-config.yaml}" "$overlay/platform-config.yaml"
{
  printf 'resources:\n'
  printf -- '- ../../%s\n' config/default ${WITH:-}
  cat <<OVERLAY
configMapGenerator:
- {name: tenant-controller, namespace: kubeopera-system, behavior: replace, files: [platform-config.yaml]}
images:
OVERLAY
  if [ -n "${IMAGE:-}" ]; then
    printf -- '- {name: ghcr.io/tantilium/tenant-controller, newName: "%s", newTag: "%s"}\n' "${IMAGE%:*}" "${IMAGE##*:}"
  fi
  for image in ${IMAGES:-}; do
    name=${image%:*}
    printf -- '- {name: ghcr.io/tantilium/%s, newName: "%s", newTag: "%s"}\n' "${name##*/}" "$name" "${image##*:}"
  done
} > "$overlay/kustomization.yaml"

kubectl apply --server-side --force-conflicts -k "$overlay" > /dev/null
kubectl wait --for=condition=Established --timeout=60s \
  crd/tenants.tenancy.kubeopera.io crd/cloudspaces.tenancy.kubeopera.io crd/tenantquotas.tenancy.kubeopera.io > /dev/null
for namespace in kubeopera-system kubeopera-core; do
  for deployment in $(kubectl -n $namespace get deployments -o name); do
    kubectl -n $namespace rollout status "$deployment" --timeout=180s
  done
done
kubectl wait --for=condition=Available --timeout=60s apiservice/v1alpha1.view.kubeopera.io > /dev/null
