{{- /* Made by build/generate-chart.ts; do not edit. */}}

{{- define "kube-nvr.rules.operator" -}}
- apiGroups:
    - kube-nvr.dev
  resources:
    - cameras
    - recorderpools
    - recordernodes
    - archivetargets
    - recordingobjectives
  verbs:
    - list
    - watch
- apiGroups:
    - coordination.k8s.io
  resources:
    - leases
  verbs:
    - list
    - watch
- apiGroups:
    - ''
  resources:
    - pods
  verbs:
    - list
    - watch
- apiGroups:
    - kube-nvr.dev
  resources:
    - cameras
    - recordernodes
  verbs:
    - get
- apiGroups:
    - kube-nvr.dev
  resources:
    - cameras/status
    - recorderpools/status
    - archivetargets/status
    - recordingobjectives/status
  verbs:
    - patch
- apiGroups:
    - kube-nvr.dev
  resources:
    - recordernodes
  verbs:
    - create
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
    - create
- apiGroups:
    - coordination.k8s.io
  resources:
    - leases
  verbs:
    - update
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
- apiGroups:
    - ''
  resources:
    - pods
  verbs:
    - create
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
    - ''
  resources:
    - persistentvolumeclaims
  verbs:
    - create
    - patch
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
- apiGroups:
    - networking.k8s.io
  resources:
    - networkpolicies
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
- apiGroups:
    - events.k8s.io
  resources:
    - events
  verbs:
    - create
    - patch
{{- end }}

{{- define "kube-nvr.rules.operatorEverywhere" -}}
- apiGroups:
    - kube-nvr.dev
  resources:
    - cameras
    - recorderpools
    - recordernodes
    - archivetargets
    - recordingobjectives
  verbs:
    - list
    - watch
- apiGroups:
    - kube-nvr.dev
  resources:
    - recorderpools/status
  verbs:
    - patch
- apiGroups:
    - events.k8s.io
  resources:
    - events
  verbs:
    - create
{{- end }}

{{- define "kube-nvr.rules.operatorSecrets" -}}
- apiGroups:
    - ''
  resources:
    - secrets
  verbs:
    - get
    - create
{{- end }}

{{- define "kube-nvr.rules.operatorRows" -}}
- apiGroups:
    - kube-nvr.dev
  resources:
    - cameras
  verbs:
    - create
    - patch
    - delete
- apiGroups:
    - kube-nvr.dev
  resources:
    - recorderpools
  verbs:
    - patch
- apiGroups:
    - ''
  resources:
    - secrets
  verbs:
    - patch
    - delete
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
- apiGroups:
    - ''
  resources:
    - secrets
  verbs:
    - create
- apiGroups:
    - ''
  resources:
    - secrets
  verbs:
    - get
    - update
  resourceNames:
    - kube-nvr-authorities
{{- end }}

{{- define "kube-nvr.rules.operatorCluster" -}}
- apiGroups:
    - ''
  resources:
    - nodes
  verbs:
    - list
    - watch
- apiGroups:
    - networking.k8s.io
  resources:
    - servicecidrs
  verbs:
    - list
- apiGroups:
    - discovery.k8s.io
  resources:
    - endpointslices
  resourceNames:
    - kubernetes
  verbs:
    - get
{{- end }}

{{- define "kube-nvr.rules.view" -}}
- apiGroups:
    - kube-nvr.dev
  resources:
    - cameras
    - recorderpools
    - recordernodes
    - archivetargets
    - recordingobjectives
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
    - archivetargets
    - recordingobjectives
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
    - archivetargets
    - recordingobjectives
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
    - archivetargets
    - recordingobjectives
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
