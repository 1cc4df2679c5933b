//go:build tools

// Package tools names the program that renders and installs the chart, so that go.mod and go.sum fix all that goes into it.
package tools

import _ "helm.sh/helm/v3/cmd/helm"
