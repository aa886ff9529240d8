{{/* Names, labels and images. Those that are of one component take (dict "root" $ "component" "gateway"). */}}

{{- define "plat.fullname" -}}
{{- .Values.fullnameOverride | default .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- define "plat.name" -}}
{{- include "plat.fullname" .root }}-{{ .component -}}
{{- end -}}

{{- define "plat.selector" -}}
app.kubernetes.io/name: plat
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{- define "plat.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
app.kubernetes.io/part-of: plat
{{ include "plat.selector" . }}
{{- end -}}

{{- define "plat.metadata" -}}
name: {{ include "plat.name" . }}
namespace: {{ .root.Release.Namespace }}
labels:
  {{- include "plat.labels" . | nindent 2 }}
{{- end -}}

{{- define "plat.image" -}}
{{- $image := .Values.image -}}
{{- $repository := required "image.repository: name where the image of deploy/Dockerfile was pushed, such as registry.example/plat" $image.repository -}}
{{- if $image.digest -}}
{{ $repository }}@{{ $image.digest }}
{{- else -}}
{{ $repository }}:{{ $image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{/* Addresses inside the cluster. */}}
{{- define "plat.identityURL" -}}
{{- $scheme := ternary "https" "http" (hasKey .Values.identity.flags "tls-cert") -}}
{{ $scheme }}://{{ include "plat.fullname" . }}-identity.{{ .Release.Namespace }}.svc:8081
{{- end -}}

{{/* The public URL, where there is one: proofs of workloads name the address that they use. */}}
{{- define "plat.attestationURL" -}}
{{- $flags := .Values.attestation.flags -}}
{{- $scheme := ternary "https" "http" (hasKey $flags "tls-cert") -}}
{{ get $flags "public-url" | default (printf "%s://%s-attestation.%s.svc:8082" $scheme (include "plat.fullname" .) .Release.Namespace) }}
{{- end -}}

{{- define "plat.gatewayURL" -}}
{{- $config := include "plat.gatewayConfig" . | fromJson -}}
{{- $scheme := ternary "https" "http" (ne "" (dig "tls" "certFile" "" $config)) -}}
{{ $scheme }}://{{ include "plat.fullname" . }}-gateway.{{ .Release.Namespace }}.svc:{{ include "plat.gatewayPort" . }}
{{- end -}}

{{- define "plat.gatewayPort" -}}
{{- regexFind "[0-9]+$" (.Values.gateway.config.listen | default ":8080") -}}
{{- end -}}

{{/* The port of adminListen; empty when the main listener serves the admin API and the metrics. */}}
{{- define "plat.adminPort" -}}
{{- regexFind "[0-9]+$" (.Values.gateway.config.adminListen | default (ternary ":9090" "" .Values.console.enabled)) -}}
{{- end -}}
