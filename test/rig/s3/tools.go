//go:build tools

// Package tools names the object storage that tests copy footage to, so that go.mod and go.sum fix all that goes into it.
package tools

import _ "github.com/versity/versitygw/cmd/versitygw"
