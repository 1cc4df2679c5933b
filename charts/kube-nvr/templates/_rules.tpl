{{- /* Made by hack/generate-chart.ts; do not edit. */}}

{{- define "kube-nvr.rules.operator" -}}
- apiGroups:
    - kube-nvr.dev
  resources:
    - cameras
    - recorderpools
    - recordernodes
  verbs:
    - get
    - list
    - watch
- apiGroups:
    - kube-nvr.dev
  resources:
    - cameras
  verbs:
    - patch
- apiGroups:
    - kube-nvr.dev
  resources:
    - cameras/status
    - recorderpools/status
  verbs:
    - update
    - patch
- apiGroups:
    - kube-nvr.dev
  resources:
    - recordernodes
  verbs:
    - create
    - update
    - patch
    - delete
- apiGroups:
    - kube-nvr.dev
  resources:
    - recordernodes/status
  verbs:
    - patch
- apiGroups:
    - kube-nvr.dev
  resources:
    - recorderpools/finalizers
  verbs:
    - update
- apiGroups:
    - coordination.k8s.io
  resources:
    - leases
  verbs:
    - get
    - list
    - watch
    - create
    - update
    - delete
- apiGroups:
    - ''
  resources:
    - serviceaccounts
    - services
    - configmaps
  verbs:
    - get
    - list
    - watch
    - create
    - patch
    - delete
- apiGroups:
    - ''
  resources:
    - pods
  verbs:
    - get
    - list
    - watch
    - delete
- apiGroups:
    - apps
  resources:
    - daemonsets
  verbs:
    - get
    - list
    - watch
    - create
    - patch
    - delete
- apiGroups:
    - apps
  resources:
    - controllerrevisions
  verbs:
    - get
    - list
    - watch
- apiGroups:
    - policy
  resources:
    - poddisruptionbudgets
  verbs:
    - get
    - list
    - watch
    - create
    - patch
    - delete
- apiGroups:
    - rbac.authorization.k8s.io
  resources:
    - roles
    - rolebindings
  verbs:
    - get
    - list
    - watch
    - create
    - patch
    - delete
- apiGroups:
    - events.k8s.io
  resources:
    - events
  verbs:
    - create
    - patch
{{- end }}

{{- define "kube-nvr.rules.operatorSecrets" -}}
- apiGroups:
    - ''
  resources:
    - secrets
  verbs:
    - get
{{- end }}

{{- define "kube-nvr.rules.operatorLease" -}}
- apiGroups:
    - coordination.k8s.io
  resources:
    - leases
  verbs:
    - get
    - create
    - update
{{- end }}

{{- define "kube-nvr.rules.operatorCluster" -}}
- apiGroups:
    - ''
  resources:
    - nodes
  verbs:
    - get
    - list
    - watch
{{- end }}

{{- define "kube-nvr.rules.view" -}}
- apiGroups:
    - kube-nvr.dev
  resources:
    - cameras
    - recorderpools
    - recordernodes
  verbs:
    - get
    - list
    - watch
{{- end }}

{{- define "kube-nvr.rules.edit" -}}
- apiGroups:
    - kube-nvr.dev
  resources:
    - cameras
    - recorderpools
    - recordernodes
  verbs:
    - get
    - list
    - watch
- apiGroups:
    - kube-nvr.dev
  resources:
    - cameras
  verbs:
    - create
    - update
    - patch
    - delete
    - deletecollection
{{- end }}

{{- define "kube-nvr.rules.admin" -}}
- apiGroups:
    - kube-nvr.dev
  resources:
    - cameras
    - recorderpools
    - recordernodes
  verbs:
    - get
    - list
    - watch
- apiGroups:
    - kube-nvr.dev
  resources:
    - cameras
    - recorderpools
    - recordernodes
  verbs:
    - create
    - update
    - patch
    - delete
    - deletecollection
{{- end }}

{{- define "kube-nvr.tokenReviewRole" -}}
apiGroup: rbac.authorization.k8s.io
kind: ClusterRole
name: system:auth-delegator
{{- end }}
