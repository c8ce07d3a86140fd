// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"strings"
	"testing"
)

func TestParseEntrypoint(t *testing.T) {
	for given, want := range map[string][]string{
		"":                    nil,
		`["/server"]`:         {"/server"},
		`["/server", "-v=2"]`: {"/server", "-v=2"},
	} {
		got, err := parseEntrypoint(given)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("parseEntrypoint(%q) = %q, %v, want %q", given, got, err, want)
		}
	}
	if _, err := parseEntrypoint("/server"); err == nil || !strings.Contains(err.Error(), "JSON") {
		t.Errorf("a plain path: error %v, want one that tells of JSON", err)
	}
}

func TestProcessesOfTheNamespacesAreNotStartedByHand(t *testing.T) {
	root := newRoot()
	root.SetArgs([]string{"namespace-init", "--clone=/does/not/exist"})
	if err := root.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), `"up"`) {
		t.Errorf("error %v, want one that tells of up", err)
	}
}
