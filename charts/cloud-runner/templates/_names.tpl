{{/*
Copyright The Tantilium Cloud Runner Authors.
SPDX-License-Identifier: Apache-2.0
*/}}

{{/* The image of the operator: by digest where there is one. Takes the root context. */}}
{{- define "cloud-runner.image" -}}
{{- $image := .Values.image -}}
{{- if $image.digest -}}
{{ printf "%s/%s@%s" $image.registry $image.repository $image.digest }}
{{- else -}}
{{ printf "%s/%s:%s" $image.registry $image.repository ($image.tag | default .Chart.AppVersion) }}
{{- end -}}
{{- end }}

{{/* The image of kubeopera-api. Takes the root context. */}}
{{- define "cloud-runner.viewImage" -}}
{{- $image := .Values.view.image -}}
{{- if $image.digest -}}
{{ printf "%s/%s@%s" .Values.image.registry $image.repository $image.digest }}
{{- else -}}
{{ printf "%s/%s:%s" .Values.image.registry $image.repository ($image.tag | default .Chart.AppVersion) }}
{{- end -}}
{{- end }}

{{/* The PlatformConfig as the operator reads it. Takes the root context. */}}
{{- define "cloud-runner.platformConfig" -}}
{{ toYaml .Values.platformConfig }}
{{- end }}

{{/* The name has the contents in it: a change rolls the Deployment, and a pod that restarts meanwhile finds what it started with.
Takes the root context. */}}
{{- define "cloud-runner.configName" -}}
tenant-controller-{{ include "cloud-runner.platformConfig" . | sha256sum | trunc 10 }}
{{- end }}
