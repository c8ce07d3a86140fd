// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package conditionstest

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
)

// closedList gives the reasons that the API declares, read from its source: the constants alone cannot be enumerated.
var closedList = sync.OnceValues(func() (map[string]bool, error) {
	root, err := moduleRoot()
	if err != nil {
		return nil, err
	}
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, "apis", "tenancy", "v1alpha1", "conditions.go"), nil, 0)
	if err != nil {
		return nil, fmt.Errorf("reading the closed list of reasons: %w", err)
	}
	reasons := map[string]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok {
			addReason(reasons, spec)
		}
		return true
	})
	if len(reasons) == 0 {
		return nil, errors.New("the API declares no reasons")
	}
	return reasons, nil
})

func addReason(reasons map[string]bool, spec *ast.ValueSpec) {
	for i, name := range spec.Names {
		if !strings.HasPrefix(name.Name, "Reason") || i >= len(spec.Values) {
			continue
		}
		if literal, ok := spec.Values[i].(*ast.BasicLit); ok {
			if value, err := strconv.Unquote(literal.Value); err == nil {
				reasons[value] = true
			}
		}
	}
}

// moduleRoot is the folder above the working directory, which is that of the package under test, that holds go.mod.
func moduleRoot() (string, error) {
	folder, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(folder, "go.mod")); err == nil {
			return folder, nil
		}
		above := filepath.Dir(folder)
		if above == folder {
			return "", errors.New("the tests do not run inside the module")
		}
		folder = above
	}
}
