{{- /*
What is scraped of operator and recorders is the same by pod and by Service: docs/monitoring.md, dashboards and rules know
it by these jobs and labels. honorLabels: what operator and recorders say of namespace, pool and node is right.
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

{{- /* Without the port, which a pod and a Service name differently. */}}
{{- define "kube-nvr.recorderEndpoint" -}}
path: /metrics
interval: {{ . }}
honorLabels: true
relabelings:
  - targetLabel: job
    replacement: kube-nvr-recorder
  - sourceLabels: [__meta_kubernetes_pod_node_name]
    targetLabel: node
  - sourceLabels: [__meta_kubernetes_pod_label_kube_nvr_dev_pool]
    targetLabel: pool
{{- end }}

{{- define "kube-nvr.monitorLabels" -}}
{{ include "kube-nvr.labels" .root }}
{{- with .labels }}
{{ toYaml . }}
{{- end }}
{{- end }}
