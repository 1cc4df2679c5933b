{{- /* First part of names in the release's namespace, short enough for the suffixes. */}}
{{- define "kube-nvr.fullname" -}}
{{- if .Values.fullnameOverride }}{{ .Values.fullnameOverride }}
{{- else if contains (.Values.nameOverride | default .Chart.Name) .Release.Name }}{{ .Release.Name | trunc 40 | trimSuffix "-" }}
{{- else }}{{ printf "%s-%s" .Release.Name (.Values.nameOverride | default .Chart.Name) | trunc 40 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- /* First part of names of cluster-scoped objects. */}}
{{- define "kube-nvr.clusterName" -}}
{{- $name := include "kube-nvr.fullname" . -}}
{{- if eq $name .Release.Namespace }}{{ $name }}{{ else }}{{ .Release.Namespace }}-{{ $name }}{{ end }}
{{- end }}

{{- define "kube-nvr.operatorName" -}}
{{ include "kube-nvr.fullname" . }}-operator
{{- end }}

{{- define "kube-nvr.serviceAccount" -}}
{{- $account := .Values.operator.serviceAccount -}}
{{ $account.name | default (include "kube-nvr.operatorName" .) }}
{{- end }}

{{- /* With watch.allNamespaces: the ClusterRole of the operator in each namespace whose owner binds it. */}}
{{- define "kube-nvr.tenantRole" -}}
{{ include "kube-nvr.clusterName" . }}-operator-tenant
{{- end }}

{{- /* The command by which the owner of a namespace gives the operator its rights there. */}}
{{- define "kube-nvr.grantCommand" -}}
kubectl --namespace={namespace} create rolebinding {{ include "kube-nvr.clusterName" . }}-operator --clusterrole={{ include "kube-nvr.tenantRole" . }} --serviceaccount={{ .Release.Namespace }}:{{ include "kube-nvr.serviceAccount" . }}
{{- end }}

{{- /* Namespace of the pool and its recorders. */}}
{{- define "kube-nvr.poolNamespace" -}}
{{ .Values.watch.namespace | default .Release.Namespace }}
{{- end }}

{{- /* The spec of the first pool. */}}
{{- define "kube-nvr.poolSpec" -}}
{{- $spec := deepCopy .Values.pool.spec }}
{{- /* With auth.mode None, recorders answer only requests for host names that they know. */}}
{{- if and (eq (dig "auth" "mode" "Kubernetes" $spec) "None") (not $spec.auth.allowedHosts) }}
{{- $hosts := concat .Values.gateway.hostnames .Values.gateway.playbackHostnames }}
{{- if .Values.ingress.enabled }}
{{- $hosts = concat $hosts (list .Values.ingress.host .Values.ingress.playbackHost) }}
{{- end }}
{{- with $hosts | compact | uniq }}
{{- $_ := set $spec.auth "allowedHosts" . }}
{{- end }}
{{- end }}
{{- if include "kube-nvr.selectsByLabel" . }}
{{- $_ := set $spec "nodeSelector" (dict "kube-nvr.dev/recorder" "true") }}
{{- end }}
{{- toYaml $spec }}
{{- end }}

{{- /* Not empty: the pool has the nodes with our label, because its values name no nodeSelector. */}}
{{- define "kube-nvr.selectsByLabel" -}}
{{- if not (hasKey .Values.pool.spec "nodeSelector") }}true{{ end }}
{{- end }}

{{- define "kube-nvr.recorderName" -}}
{{ .Values.pool.name }}-recorder
{{- end }}

{{- define "kube-nvr.image" -}}
{{- include "kube-nvr.imageName" (list .Values.image .Chart.AppVersion .Values.global.imageRegistry) }}
{{- end }}

{{- define "kube-nvr.recorderImage" -}}
{{- include "kube-nvr.imageName" (list .Values.recorderImage .Chart.AppVersion .Values.global.imageRegistry) }}
{{- end }}

{{- /* Name of an image, from its values, the default tag and the registry of all images. */}}
{{- define "kube-nvr.imageName" -}}
{{- $image := index . 0 -}}
{{- with index . 2 }}{{ trimSuffix "/" . }}/{{ end -}}
{{- if $image.digest }}{{ $image.repository }}@{{ $image.digest }}
{{- else }}{{ $image.repository }}:{{ $image.tag | default (index . 1) }}
{{- end }}
{{- end }}

{{- /* Secrets for pulling the operator's image, as in a pod; may be empty. */}}
{{- define "kube-nvr.pullSecrets" -}}
{{- $names := list }}
{{- range concat .Values.global.imagePullSecrets .Values.image.pullSecrets }}
{{- $names = append $names (ternary . (get (ternary dict . (kindIs "string" .)) "name") (kindIs "string" .)) }}
{{- end }}
{{- range uniq $names }}
- name: {{ . }}
{{- end }}
{{- end }}

{{- /* PriorityClass of recorders whose pool names none; may be empty. */}}
{{- define "kube-nvr.recorderPriorityClass" -}}
{{- $class := .Values.recorderPriorityClass -}}
{{- $class.name | default (ternary (printf "%s-recorder" (include "kube-nvr.clusterName" .)) "" $class.create) }}
{{- end }}

{{- define "kube-nvr.labels" -}}
app.kubernetes.io/name: kube-nvr
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "kube-nvr.operatorSelector" -}}
app.kubernetes.io/name: kube-nvr
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: operator
{{- end }}

{{- define "kube-nvr.recorderSelector" -}}
app.kubernetes.io/name: kube-nvr
app.kubernetes.io/component: recorder
{{- end }}

{{- define "kube-nvr.adminTokenSecret" -}}
{{ .Values.pool.name }}-admin-token
{{- end }}

{{- /* "true" when the operator creates the tokens of the pool. */}}
{{- define "kube-nvr.makesTokens" -}}
{{- $auth := .Values.pool.spec.auth | default dict -}}
{{- if and .Values.pool.enabled (eq ($auth.mode | default "") "Token") (not $auth.tokensSecretRef) }}true{{ end }}
{{- end }}

{{- /* Security contexts of the operator and of helm test. */}}
{{- define "kube-nvr.podSecurityContext" -}}
{{- $own := dict "runAsNonRoot" true "runAsUser" 65532 "runAsGroup" 65532 "seccompProfile" (dict "type" "RuntimeDefault") }}
{{- range $field, $value := .Values.operator.podSecurityContext }}{{ $_ := set $own $field $value }}{{ end }}
{{- toYaml $own }}
{{- end }}

{{- define "kube-nvr.securityContext" -}}
{{- $own := dict "allowPrivilegeEscalation" false "readOnlyRootFilesystem" true "capabilities" (dict "drop" (list "ALL")) }}
{{- range $field, $value := .Values.operator.securityContext }}{{ $_ := set $own $field $value }}{{ end }}
{{- toYaml $own }}
{{- end }}

{{- /* Anti-affinity between replicas, with the terms of operator.affinity. */}}
{{- define "kube-nvr.antiAffinity" -}}
{{- $given := dig "podAntiAffinity" dict .Values.operator.affinity }}
{{- $required := $given.requiredDuringSchedulingIgnoredDuringExecution | default list }}
{{- $preferred := $given.preferredDuringSchedulingIgnoredDuringExecution | default list }}
{{- $selector := dict "matchLabels" (include "kube-nvr.operatorSelector" . | fromYaml) }}
{{- $term := dict "topologyKey" "kubernetes.io/hostname" "labelSelector" $selector }}
{{- if eq .Values.operator.antiAffinity "Required" }}
{{- $required = prepend $required $term }}
{{- else }}
{{- $preferred = prepend $preferred (dict "weight" 100 "podAffinityTerm" $term) }}
{{- end }}
{{- with $required }}
requiredDuringSchedulingIgnoredDuringExecution:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $preferred }}
preferredDuringSchedulingIgnoredDuringExecution:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- /* Checks that the schema of the values cannot express. */}}
{{- define "kube-nvr.check" -}}
{{- if and .Values.watch.allNamespaces .Values.watch.namespace -}}
{{- fail "watch.namespace: leave it out when watch.allNamespaces is true" -}}
{{- end -}}
{{- if and .Values.watch.namespaces (not .Values.watch.allNamespaces) -}}
{{- fail "watch.namespaces: is only for watch.allNamespaces" -}}
{{- end -}}
{{- $archive := .Values.pool.spec.archive | default dict -}}
{{- if and .Values.pool.enabled (not $archive.hostPath) (not $archive.volumeClaimTemplate) -}}
{{- fail "pool.spec.archive.hostPath: is required: a directory that exists on each node that records, as /mnt/archive; or volumeClaimTemplate" -}}
{{- end -}}
{{- if and (not .Values.operator.serviceAccount.create) (not .Values.operator.serviceAccount.name) -}}
{{- fail "operator.serviceAccount.name: is required when operator.serviceAccount.create is false" -}}
{{- end -}}
{{- if and .Values.ingress.enabled (not .Values.pool.enabled) }}{{ fail "ingress.enabled: needs pool.enabled" }}{{ end -}}
{{- if and .Values.ingress.enabled (not .Values.ingress.host) }}{{ fail "ingress.host: is required when ingress.enabled is true" }}{{ end -}}
{{- if and .Values.gateway.enabled (not .Values.pool.enabled) }}{{ fail "gateway.enabled: needs pool.enabled" }}{{ end -}}
{{- if and .Values.gateway.enabled (not .Values.gateway.parentRefs) }}{{ fail "gateway.parentRefs: is required when gateway.enabled is true" }}{{ end -}}
{{- end }}
