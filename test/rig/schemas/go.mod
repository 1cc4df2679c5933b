// Where the schemas of kinds come from that the chart makes for others. Only files of these modules are read, no package
// is built, so `go mod tidy` is not for this one.
module kube-nvr.dev/test/rig/schemas

go 1.24.0

require github.com/prometheus-operator/prometheus-operator v0.85.0

require sigs.k8s.io/gateway-api v1.4.1
