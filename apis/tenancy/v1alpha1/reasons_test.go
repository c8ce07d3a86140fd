// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var documentedReason = regexp.MustCompile(`(?m)^\| ([A-Z][A-Za-z]+) \|`)

// The page tells people what every reason means and what mends it: none is missing there, and none is made up.
func TestEveryReasonIsDocumented(t *testing.T) {
	page, err := os.ReadFile("../../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	var documented []string
	for _, match := range documentedReason.FindAllStringSubmatch(string(page), -1) {
		documented = append(documented, match[1])
	}
	slices.Sort(documented)
	if diff := cmp.Diff(declaredReasons(t), documented); diff != "" {
		t.Errorf("reasons in conditions.go (-) and in docs/operations.md (+) differ:\n%s", diff)
	}
}

func declaredReasons(t *testing.T) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "conditions.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var reasons []string
	for name, object := range file.Scope.Objects {
		spec, ok := object.Decl.(*ast.ValueSpec)
		if !ok || !strings.HasPrefix(name, "Reason") {
			continue
		}
		value, ok := spec.Values[0].(*ast.BasicLit)
		if !ok {
			t.Fatalf("%s is not a literal", name)
		}
		reason, err := strconv.Unquote(value.Value)
		if err != nil {
			t.Fatal(err)
		}
		reasons = append(reasons, reason)
	}
	slices.Sort(reasons)
	return reasons
}
