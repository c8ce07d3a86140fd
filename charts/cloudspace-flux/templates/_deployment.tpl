{{/*
Copyright The Tantilium Cloud Runner Authors.
SPDX-License-Identifier: Apache-2.0
*/}}

{{/*
The Deployment of one controller. Takes a dictionary:
  root           the root context
  name           name of the controller, of its image and of its ServiceAccount
  values         tag and resources of the controller
  args           flags beyond those that all controllers share
  env            environment beyond RUNTIME_NAMESPACE
  ports          container ports beyond metrics and health
  readinessProbe the HTTP request that tells whether it serves
  volumes        emptyDir volumes beyond /tmp, as name: mount path
  gracePeriod    seconds between SIGTERM and SIGKILL
*/}}
{{- define "cloudspace-flux.deployment" -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .name }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "cloudspace-flux.labels" .root | nindent 4 }}
    app.kubernetes.io/component: {{ .name }}
    control-plane: controller
spec:
  replicas: 1
  # Never two at once: that stands in for leader election, whose Lease every controller would renew every five seconds.
  strategy:
    type: Recreate
  selector:
    matchLabels:
      app: {{ .name }}
  template:
    metadata:
      labels:
        app: {{ .name }}
        app.kubernetes.io/component: {{ .name }}
        app.kubernetes.io/instance: {{ .root.Release.Name }}
        app.kubernetes.io/part-of: flux
    spec:
      serviceAccountName: {{ .name }}
      enableServiceLinks: false
      terminationGracePeriodSeconds: {{ .gracePeriod }}
      {{- with .root.Values.imagePullSecrets }}
      imagePullSecrets:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      securityContext:
        runAsNonRoot: true
        runAsUser: 65534
        runAsGroup: 65534
        fsGroup: 65534
        seccompProfile:
          type: RuntimeDefault
      containers:
        - name: manager
          image: {{ printf "%s/fluxcd/%s:%s" .root.Values.image.registry .name .values.tag }}
          imagePullPolicy: {{ .root.Values.image.pullPolicy }}
          args:
            - --watch-all-namespaces
            - --log-level={{ .root.Values.logLevel }}
            - --log-encoding=json
            # No notification-controller: events go to the Kubernetes API alone.
            - --events-addr=
            {{- with .args }}
            {{- toYaml . | nindent 12 }}
            {{- end }}
          env:
            - name: RUNTIME_NAMESPACE
              valueFrom:
                fieldRef:
                  fieldPath: metadata.namespace
            {{- with .env }}
            {{- toYaml . | nindent 12 }}
            {{- end }}
          ports:
            {{- with .ports }}
            {{- toYaml . | nindent 12 }}
            {{- end }}
            - name: http-prom
              containerPort: 8080
              protocol: TCP
            - name: healthz
              containerPort: 9440
              protocol: TCP
          # Probed often until the first success, so that a release is Ready soon after its controllers are, and with
          # patience, because a node that starts many CloudSpaces at once starts each of them slowly.
          startupProbe:
            httpGet:
              {{- toYaml .readinessProbe | nindent 14 }}
            periodSeconds: 2
            timeoutSeconds: 2
            failureThreshold: 90
          readinessProbe:
            httpGet:
              {{- toYaml .readinessProbe | nindent 14 }}
            timeoutSeconds: 5
          livenessProbe:
            httpGet:
              path: /healthz
              port: healthz
            periodSeconds: 20
            timeoutSeconds: 5
          resources:
            {{- toYaml .values.resources | nindent 12 }}
          securityContext:
            allowPrivilegeEscalation: false
            readOnlyRootFilesystem: true
            runAsNonRoot: true
            capabilities:
              drop: [ALL]
            seccompProfile:
              type: RuntimeDefault
          volumeMounts:
            - name: tmp
              mountPath: /tmp
            {{- range $volume, $path := .volumes }}
            - name: {{ $volume }}
              mountPath: {{ $path }}
            {{- end }}
      volumes:
        - name: tmp
          emptyDir: {}
        {{- range $volume, $path := .volumes }}
        - name: {{ $volume }}
          emptyDir: {}
        {{- end }}
{{- end }}
