{{- /* First part of names in the release's namespace, short enough for the suffixes. */}}
{{- define "kube-nvr.fullname" -}}
{{- if .Values.fullnameOverride }}{{ .Values.fullnameOverride }}
{{- else if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 40 | trimSuffix "-" }}
{{- else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 40 | trimSuffix "-" }}
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

{{- /* With watch.allNamespaces: the ClusterRole of the operator in each namespace whose owner binds it. */}}
{{- define "kube-nvr.tenantRole" -}}
{{ include "kube-nvr.clusterName" . }}-operator-tenant
{{- end }}

{{- /* The command by which the owner of a namespace gives the operator its rights there. */}}
{{- define "kube-nvr.grantCommand" -}}
kubectl --namespace={namespace} create rolebinding {{ include "kube-nvr.clusterName" . }}-operator --clusterrole={{ include "kube-nvr.tenantRole" . }} --serviceaccount={{ .Release.Namespace }}:{{ include "kube-nvr.operatorName" . }}
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
{{- toYaml $spec }}
{{- end }}

{{- define "kube-nvr.recorderName" -}}
{{ .Values.pool.name }}-recorder
{{- end }}

{{- define "kube-nvr.image" -}}
{{- include "kube-nvr.imageName" (list .Values.image .Chart.AppVersion) }}
{{- end }}

{{- define "kube-nvr.recorderImage" -}}
{{- include "kube-nvr.imageName" (list .Values.recorderImage .Chart.AppVersion) }}
{{- end }}

{{- /* Name of an image, from its values and the default tag. */}}
{{- define "kube-nvr.imageName" -}}
{{- $image := index . 0 -}}
{{- if $image.digest }}{{ $image.repository }}@{{ $image.digest }}
{{- else }}{{ $image.repository }}:{{ $image.tag | default (index . 1) }}
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

{{- /* Checks that the schema of the values cannot express. */}}
{{- define "kube-nvr.check" -}}
{{- if and .Values.watch.allNamespaces .Values.watch.namespace -}}
{{- fail "watch.namespace: leave it out when watch.allNamespaces is true" -}}
{{- end -}}
{{- if and .Values.watch.namespaces (not .Values.watch.allNamespaces) -}}
{{- fail "watch.namespaces: is only for watch.allNamespaces" -}}
{{- end -}}
{{- if and .Values.pool.enabled (not (dig "archive" "hostPath" "" .Values.pool.spec)) -}}
{{- fail "pool.spec.archive.hostPath: is required: a directory that exists on each node that records, as /mnt/archive" -}}
{{- end -}}
{{- if and .Values.ingress.enabled (not .Values.pool.enabled) }}{{ fail "ingress.enabled: needs pool.enabled" }}{{ end -}}
{{- if and .Values.ingress.enabled (not .Values.ingress.host) }}{{ fail "ingress.host: is required when ingress.enabled is true" }}{{ end -}}
{{- if and .Values.gateway.enabled (not .Values.pool.enabled) }}{{ fail "gateway.enabled: needs pool.enabled" }}{{ end -}}
{{- if and .Values.gateway.enabled (not .Values.gateway.parentRefs) }}{{ fail "gateway.parentRefs: is required when gateway.enabled is true" }}{{ end -}}
{{- end }}
