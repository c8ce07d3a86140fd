#!/usr/bin/env bash
# Copyright The Tantilium Cloud Runner Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Writes what an installation takes from config/, so that there is one source: dist/install.yaml, and in charts/cloud-runner the
# objects that no value changes, the CRDs, and the default PlatformConfig in values.yaml.
set -euo pipefail
cd "$(dirname "$0")/.."

chart=charts/cloud-runner
generated=$chart/templates/generated

header() { printf '{{- /* Generated from %s by hack/generate-install.sh. */ -}}\n' "$1"; }

# concat writes manifests as one template. They hold no "{{", which Helm would take as its own.
concat() {
  local file
  for file in "$@"; do
    if grep -q '{{' "$file"; then
      echo "$file has {{ in it, which Helm takes as its own" >&2
      return 1
    fi
    printf -- '---\n'
    sed '1{/^---$/d}' "$file"
  done
}

# of lists the files of a kustomization, in its order.
of() { sed -n 's|^- \([a-z_.]*\.yaml\).*|'"$1"'/\1|p' "$1/kustomization.yaml"; }

# crds may be left out, and are kept at the end of a release unless asked otherwise.
crds() {
  header config/crd
  printf '{{- if .Values.crds.install }}\n'
  concat $(of config/crd) | sed 's|^  annotations:$|&\n    {{- if .Values.crds.keep }}\n    helm.sh/resource-policy: keep\n    {{- end }}|'
  printf '{{- end }}\n'
}

# priority_classes outlive the release: pods of control planes that go on name them.
priority_classes() {
  header config/manager
  printf '{{- if .Values.priorityClasses.install }}\n'
  concat config/manager/priority_classes.yaml | sed 's|^metadata:$|&\n  annotations:\n    helm.sh/resource-policy: keep|'
  printf '{{- end }}\n'
}

# core pulls its image from the mirror of the platform, and with the operator's pull secrets. It outlives the release: CloudSpaces that go on
# ask the resolver, by its address.
core() {
  header config/core
  concat $(of config/core) | sed -e 's|^metadata:$|&\n  annotations:\n    helm.sh/resource-policy: keep|' -e 's|image: docker.io/|image: {{ .Values.platformConfig.images.registry \| default "docker.io" }}/|' \
    -e 's|^      automountServiceAccountToken: false$|&\n      {{- with .Values.imagePullSecrets }}\n      imagePullSecrets:\n        {{- toYaml . \| nindent 8 }}\n      {{- end }}|'
}

# view has an image of its own, from the registry of the operator's.
view() {
  header config/apiserver
  concat $(of config/apiserver) | sed -e 's|image: ghcr.io/tantilium/kubeopera-api:.*|image: {{ include "cloud-runner.viewImage" . }}|' \
    -e 's|^      enableServiceLinks: false$|&\n      {{- with .Values.imagePullSecrets }}\n      imagePullSecrets:\n        {{- toYaml . \| nindent 8 }}\n      {{- end }}|'
}

mkdir -p dist
{
  printf '# All of the platform: kubectl apply --server-side -f install.yaml. Generated from config/default by hack/generate-install.sh.\n'
  go tool -modfile=hack/tools/go.mod kustomize build config/default
} > dist/install.yaml

rm -rf "$generated"
mkdir -p "$generated"
crds > "$generated/crds.yaml"
priority_classes > "$generated/priority_classes.yaml"
{ header config/rbac && concat $(of config/rbac); } > "$generated/rbac.yaml"
core > "$generated/core.yaml"
view > "$generated/apiserver.yaml"
{ header config/admission && concat $(of config/admission); } > "$generated/admission.yaml"
{ header config/manager && concat config/manager/disruption_budget.yaml; } > "$generated/disruption_budget.yaml"
{
  header config/manager
  printf '{{- if .Values.metrics.enabled }}\n'
  concat config/manager/metrics_service.yaml
  printf '{{- end }}\n'
} > "$generated/metrics_service.yaml"

# The last part of values.yaml is the default PlatformConfig, with its comments.
sed -i '/^platformConfig:$/q' "$chart/values.yaml"
sed -e '/^# How the platform makes/,/^# the start and is named/d' -e 's/^./  &/' config/manager/platform-config.yaml >> "$chart/values.yaml"
