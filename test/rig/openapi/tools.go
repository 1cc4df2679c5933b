//go:build tools

// Package tools names the programs that generate clients of the OpenAPI document and compare two of them, and what
// generated clients import, so that go.mod and go.sum fix all that goes into them.
package tools

import (
	_ "github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen"
	_ "github.com/oapi-codegen/runtime"
	_ "github.com/oasdiff/oasdiff"
)
