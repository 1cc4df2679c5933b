//go:build tools

// Package tools names the program that renders and installs the chart and those that check what it renders, so that go.mod
// and go.sum fix all that goes into them.
package tools

import (
	_ "github.com/helm-unittest/helm-unittest/cmd/helm-unittest"
	_ "github.com/yannh/kubeconform/cmd/kubeconform"
	_ "helm.sh/helm/v3/cmd/helm"
)
