{{/*
Copyright The Tantilium Cloud Runner Authors.
SPDX-License-Identifier: Apache-2.0
*/}}

{{/* Labels of every object. Takes the root context. */}}
{{- define "cloudspace-flux.labels" -}}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/part-of: flux
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}
