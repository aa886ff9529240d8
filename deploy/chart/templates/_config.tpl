{{/* The files that the operator renders, each the ConfigMap plat-<name>, and the key of gateway.json that names it. */}}
{{- define "plat.renderedFiles" -}}
- { key: policyFile, name: policies, file: policies.json }
- { key: upstreamsFile, name: upstreams, file: upstreams.json }
- { key: modelsFile, name: models, file: models.json }
- { key: a2a.routesFile, name: agents, file: agents.json }
- { key: budgetsFile, name: budgets, file: budgets.json }
- { key: memoryFile, name: memory, file: memory.json }
- { key: sovereigntyPolicyFile, name: sovereignty, file: sovereignty.json }
- { key: revocationsFile, name: revocations, file: revocations.json }
{{- end -}}

{{/* gateway.json: the values as they are, with what only the chart knows where they leave it out. */}}
{{- define "plat.gatewayConfig" -}}
{{- $config := deepCopy .Values.gateway.config -}}
{{- $identity := get $config "identity" | default dict -}}
{{- if not (hasKey $identity "jwksURL") -}}
{{- $_ := set $identity "jwksURL" (printf "%s/.well-known/jwks.json" (include "plat.identityURL" .)) -}}
{{- end -}}
{{- if not (hasKey $identity "issuer") -}}
{{- $_ := set $identity "issuer" (get .Values.identity.flags "issuer" | default "plat-identity") -}}
{{- end -}}
{{- $_ := set $config "identity" $identity -}}
{{- if not (hasKey $config "tokenExchangeURL") -}}
{{- $_ := set $config "tokenExchangeURL" (printf "%s/v1/exchange" (include "plat.identityURL" .)) -}}
{{- end -}}
{{- if .Values.console.enabled -}}
{{- if not (hasKey $config "adminListen") -}}{{- $_ := set $config "adminListen" (printf ":%s" (include "plat.adminPort" .)) -}}{{- end -}}
{{- $_ := set $config "consoleURL" (printf "https://%s/console" .Values.console.host) -}}
{{- if .Values.console.clientSecretSecret -}}
{{- $console := get $config "console" | default dict -}}
{{- $_ := set $console "clientSecretFile" "/var/run/plat/console/secret" -}}
{{- $_ := set $config "console" $console -}}
{{- end -}}
{{- end -}}
{{- $posture := get $config "posture" | default dict -}}
{{- if not (hasKey $posture "replicas") -}}
{{- $_ := set $posture "replicas" (ternary .Values.gateway.autoscaling.minReplicas .Values.gateway.replicas .Values.gateway.autoscaling.enabled) -}}
{{- end -}}
{{- $_ := set $config "posture" $posture -}}
{{- if .Values.operator.enabled -}}
{{- range include "plat.renderedFiles" . | fromYamlArray -}}
{{- $path := printf "/etc/plat/%s/%s" .name .file -}}
{{- if eq .key "a2a.routesFile" -}}
{{- $a2a := get $config "a2a" | default dict -}}
{{- if not (hasKey $a2a "routesFile") -}}{{- $_ := set $a2a "routesFile" $path -}}{{- end -}}
{{- $_ := set $config "a2a" $a2a -}}
{{- else if not (hasKey $config .key) -}}
{{- $_ := set $config .key $path -}}
{{- end -}}
{{- end -}}
{{- if not (hasKey $config "upstreamCredentialsDir") -}}
{{- $_ := set $config "upstreamCredentialsDir" "/var/run/plat/upstream-credentials" -}}
{{- end -}}
{{- end -}}
{{- if eq "file" (dig "stateBackend" "type" "file" $config) -}}
{{- $state := $config.auditPath | dir | dir -}}
{{- range $key, $file := dict "approvalStorePath" "approvals" "pinStorePath" "pins" "taintStorePath" "taints" "notifyOutboxPath" "notifications" -}}
{{- if not (hasKey $config $key) -}}
{{- $_ := set $config $key (printf "%s/state/%s.jsonl" $state $file) -}}
{{- end -}}
{{- end -}}
{{- else if not (dig "stateBackend" "dsnFile" "" $config) -}}
{{- $_ := set $config.stateBackend "dsnFile" "/var/run/plat/state/dsn" -}}
{{- end -}}
{{- if dig "configSync" "enabled" false $config -}}
{{- $items := get $config.configSync "items" | default list -}}
{{- range include "plat.renderedFiles" . | fromYamlArray -}}
{{- $holder := ternary (get $config "a2a") $config (eq .key "a2a.routesFile") | default dict -}}
{{- $key := trimPrefix "a2a." .key -}}
{{- if eq (get $holder $key) (printf "/etc/plat/%s/%s" .name .file) -}}
{{- $live := printf "/var/run/plat/live/%s" .file -}}
{{- $_ := set $holder $key $live -}}
{{- $items = append $items (dict "configMap" (printf "plat-%s" .name) "key" .file "path" $live) -}}
{{- end -}}
{{- end -}}
{{- $_ := set $config.configSync "items" $items -}}
{{- end -}}
{{- toPrettyJson $config -}}
{{- end -}}

{{/* The rendered files that gateway.json names where the chart mounts them. */}}
{{- define "plat.mountedFiles" -}}
{{- $config := include "plat.gatewayConfig" . | fromJson -}}
{{- $mounted := list -}}
{{- range include "plat.renderedFiles" . | fromYamlArray -}}
{{- $path := ternary (dig "a2a" "routesFile" "" $config) (get $config .key) (eq .key "a2a.routesFile") -}}
{{- if eq $path (printf "/etc/plat/%s/%s" .name .file) -}}
{{- $mounted = append $mounted . -}}
{{- end -}}
{{- end -}}
{{- toYaml $mounted -}}
{{- end -}}

{{/* What values alone cannot say, told when the chart is rendered. */}}
{{- define "plat.checks" -}}
{{- $gateway := .Values.gateway -}}
{{- $postgres := eq "postgres" (dig "stateBackend" "type" "file" $gateway.config) -}}
{{- $several := ternary "gateway.autoscaling.enabled" (ternary "gateway.replicas" "" (gt (int $gateway.replicas) 1)) $gateway.autoscaling.enabled -}}
{{- if and $several (not $postgres) -}}
{{- fail (printf "%s: several replicas share approvals, budgets and revocations in Postgres; set gateway.config.stateBackend.type to postgres" $several) -}}
{{- end -}}
{{- if and $postgres (not $gateway.stateDsnSecret) (not (dig "stateBackend" "dsnFile" "" $gateway.config)) -}}
{{- fail "gateway.stateDsnSecret: gateway.config.stateBackend.type is postgres; name the Secret with its connection string" -}}
{{- end -}}
{{- if and $gateway.stateDsnSecret (not $postgres) -}}
{{- fail "gateway.stateDsnSecret: needs gateway.config.stateBackend.type postgres" -}}
{{- end -}}
{{- if and (gt (int .Values.identity.replicas) 1) (not .Values.identity.stateDsnSecret) -}}
{{- fail "identity.replicas: several brokers share nonces, binds and replays in Postgres; set identity.stateDsnSecret" -}}
{{- end -}}
{{- if and $gateway.autoscaling.enabled (gt (int $gateway.autoscaling.minReplicas) (int $gateway.autoscaling.maxReplicas)) -}}
{{- fail "gateway.autoscaling.minReplicas: must be at most gateway.autoscaling.maxReplicas" -}}
{{- end -}}
{{- include "plat.consoleChecks" . -}}
{{- if and .Values.alerts.enabled (not .Values.alerts.runbookBaseURL) -}}
{{- fail "alerts.runbookBaseURL: write where docs/runbooks.md is read, such as https://git.example/plat/docs/runbooks.md" -}}
{{- end -}}
{{- end -}}

{{/* What would leave browsers without the console, or without a way to log in. */}}
{{- define "plat.consoleChecks" -}}
{{- $console := .Values.console -}}
{{- $config := .Values.gateway.config -}}
{{- if not $console.enabled -}}
{{- if $console.ingress.enabled -}}{{- fail "console.ingress.enabled: needs console.enabled" -}}{{- end -}}
{{- if $console.clientSecretSecret -}}{{- fail "console.clientSecretSecret: needs console.enabled" -}}{{- end -}}
{{- else -}}
{{- $url := printf "https://%s/console" $console.host -}}
{{- $oidc := dig "adminAuth" "oidc" dict $config -}}
{{- if not $console.host -}}
{{- fail "console.host: write the host name that browsers open, such as plat.example.com" -}}
{{- end -}}
{{- if ne $url (get $config "consoleURL" | default $url) -}}
{{- fail (printf "gateway.config.consoleURL: must be %s, or be left out: console.host sets it" $url) -}}
{{- end -}}
{{- if not (dig "console" "enabled" true $config) -}}
{{- fail "gateway.config.console.enabled: is false while console.enabled is true" -}}
{{- end -}}
{{- if eq "token" (dig "adminAuth" "mode" "token" $config) -}}
{{- fail "gateway.config.adminAuth.mode: set oidc or both: people log in to the console at an identity provider" -}}
{{- end -}}
{{- if not (get $oidc "issuer") -}}
{{- fail "gateway.config.adminAuth.oidc.issuer: write the identity provider of the console" -}}
{{- end -}}
{{- if not (or (get $oidc "clientID") (dig "console" "clientID" "" $config)) -}}
{{- fail "gateway.config.adminAuth.oidc.clientID: write the client of the console at the identity provider" -}}
{{- end -}}
{{- if and $console.clientSecretSecret (dig "console" "clientSecretFile" "" $config) -}}
{{- fail "console.clientSecretSecret: gateway.config.console.clientSecretFile is set as well; leave one out" -}}
{{- end -}}
{{- if and $console.ingress.enabled .Values.networkPolicy.enabled (not .Values.networkPolicy.admin) -}}
{{- fail "networkPolicy.admin: name the pods of the ingress controller: without them it cannot reach the console" -}}
{{- end -}}
{{- end -}}
{{- end -}}
