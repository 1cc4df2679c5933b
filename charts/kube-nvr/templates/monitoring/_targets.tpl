{{- /*
PodMonitors and ServiceMonitors give the same metrics: docs/monitoring.md, dashboards and rules expect these jobs and labels.
honorLabels: the labels namespace, pool and node of operator and recorders are right, those that Prometheus derives from the pod are not.
*/}}

{{- define "kube-nvr.operatorEndpoint" -}}
port: http
path: /metrics
interval: {{ . }}
honorLabels: true
relabelings:
  - targetLabel: job
    replacement: kube-nvr-operator
{{- end }}

{{- /*
The endpoint of one pool. Its token is in a Secret of the pool. Recorders with TLS have an annotation for it, and are verified
with the pool's CA unless tlsConfig is set.
*/}}
{{- define "kube-nvr.recorderEndpoint" -}}
port: metrics
path: /metrics
interval: {{ .monitor.interval }}
honorLabels: true
{{- if .pool.token }}
authorization:
  credentials:
    name: {{ .pool.name }}-metrics-token
    key: token
tlsConfig:
  {{- if .monitor.tlsConfig }}
  {{- toYaml .monitor.tlsConfig | nindent 2 }}
  {{- else }}
  ca:
    configMap:
      name: {{ .pool.name }}-recorder-ca
      key: ca.crt
  serverName: {{ .pool.name }}-recorder
  {{- end }}
{{- end }}
relabelings:
  {{- if .pool.token }}
  - sourceLabels: [__meta_kubernetes_pod_annotation_kube_nvr_dev_metrics_scheme]
    regex: https
    targetLabel: __scheme__
    replacement: https
  {{- end }}
  - targetLabel: job
    replacement: kube-nvr-recorder
  - sourceLabels: [__meta_kubernetes_pod_node_name]
    targetLabel: node
  - sourceLabels: [__meta_kubernetes_pod_label_kube_nvr_dev_pool]
    targetLabel: pool
{{- end }}

{{- /*
The pools whose recorders are scraped, as JSON: the pool of the chart, even if it was created by other means, and those in
`monitor.pools`. `suffix` is the end of the monitor's name.
*/}}
{{- define "kube-nvr.monitoredPools" -}}
{{- $spec := .root.Values.pool.spec -}}
{{- $own := dict "namespace" (include "kube-nvr.poolNamespace" .root) "name" .root.Values.pool.name "suffix" "recorders" -}}
{{- $_ := set $own "token" (eq (dig "metrics" "mode" "Token" $spec) "Token") -}}
{{- if and .root.Values.pool.enabled $own.token (dig "tls" "secretRef" false $spec) (not .monitor.tlsConfig) -}}
{{- fail (printf "%s.tlsConfig: say how Prometheus trusts the certificate of pool.spec.tls.secretRef, as {\"insecureSkipVerify\": true}" .key) -}}
{{- end -}}
{{- $pools := list $own -}}
{{- range .monitor.pools -}}
{{- $token := eq (get . "mode" | default "Token") "Token" -}}
{{- $suffix := printf "%s-recorders" .name -}}
{{- $pools = append $pools (dict "namespace" .namespace "name" .name "suffix" $suffix "token" $token) -}}
{{- end -}}
{{- toJson $pools -}}
{{- end }}

{{- define "kube-nvr.monitorLabels" -}}
{{ include "kube-nvr.labels" .root }}
{{- with .labels }}
{{ toYaml . }}
{{- end }}
{{- end }}
