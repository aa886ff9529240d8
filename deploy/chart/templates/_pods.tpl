{{/* What every pod has: (dict "root" $ "component" "gateway" "values" .Values.gateway). */}}

{{- define "plat.podMetadata" -}}
labels:
  {{- include "plat.selector" . | nindent 2 }}
  {{- with .values.podLabels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with .values.podAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "plat.podSpec" -}}
{{- with .root.Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
serviceAccountName: {{ include "plat.name" . }}
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile: { type: RuntimeDefault }
affinity:
  {{- if .values.affinity }}
  {{- toYaml .values.affinity | nindent 2 }}
  {{- else }}
  podAntiAffinity:
    preferredDuringSchedulingIgnoredDuringExecution:
      - weight: 100
        podAffinityTerm:
          topologyKey: kubernetes.io/hostname
          labelSelector:
            matchLabels:
              {{- include "plat.selector" . | nindent 14 }}
  {{- end }}
{{- with .values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.topologySpreadConstraints }}
topologySpreadConstraints:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- end -}}

{{- define "plat.containerSecurity" -}}
allowPrivilegeEscalation: false
privileged: false
readOnlyRootFilesystem: true
capabilities: { drop: [ALL] }
{{- end -}}

{{/* Flags of values as arguments: (dict "flags" .Values.identity.flags "where" "identity.flags" "set" (list "listen")). */}}
{{- define "plat.flags" -}}
{{- range $name, $value := .flags }}
{{- if has $name $.set }}
{{- fail (printf "%s.%s: the chart sets it; use the values beside it" $.where $name) }}
{{- end }}
- {{ printf "-%s=%s" $name (ternary (join "," $value) (toString $value) (kindIs "slice" $value)) | quote }}
{{- end }}
{{- end -}}

{{/* Where a process may write: nothing but here and its volumes. */}}
{{- define "plat.tmpVolume" -}}
- name: tmp
  emptyDir: {}
{{- end -}}

{{- define "plat.tmpMount" -}}
- name: tmp
  mountPath: /tmp
{{- end -}}

{{/*
What was compiled is kept for the next start of the container. With a memory limit the heap of Node may use 60 % of it: the rest is for
bodies, connections and code, so that the process finds itself overloaded, and refuses work, before the container ends it.
*/}}
{{- define "plat.processEnv" -}}
- name: XDG_CACHE_HOME
  value: /tmp/cache
{{- $own := false }}
{{- range .env }}{{ if eq .name "NODE_OPTIONS" }}{{ $own = true }}{{ end }}{{ end }}
{{- if and (dig "limits" "memory" "" (default dict .resources)) (not $own) }}
- name: NODE_OPTIONS
  value: --max-old-space-size-percentage=60
{{- end }}
{{- end -}}

{{- define "plat.probes" -}}
startupProbe:
  httpGet: { path: /healthz, port: {{ .port }}, scheme: {{ .scheme }} }
  periodSeconds: 1
  failureThreshold: 60
livenessProbe:
  httpGet: { path: /healthz, port: {{ .port }}, scheme: {{ .scheme }} }
  periodSeconds: 10
  timeoutSeconds: 5
readinessProbe:
  httpGet: { path: /readyz, port: {{ .port }}, scheme: {{ .scheme }} }
  periodSeconds: 2
  timeoutSeconds: 2
{{- end -}}
