// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package words

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
	"testing"

	tenancyv1alpha1 "github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
)

// Every reason that the operator gives has words for tenants.
func TestEveryReasonHasWords(t *testing.T) {
	t.Parallel()
	file, err := parser.ParseFile(token.NewFileSet(), "../../apis/tenancy/v1alpha1/conditions.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 || !strings.HasPrefix(spec.Names[0].Name, "Reason") {
			return true
		}
		literal, ok := spec.Values[0].(*ast.BasicLit)
		if !ok {
			return true
		}
		reason, err := strconv.Unquote(literal.Value)
		if err != nil {
			t.Fatal(err)
		}
		found++
		if _, known := said[reason]; !known {
			t.Errorf("there are no words for %s", reason)
		}
		return true
	})
	if found != len(said) {
		t.Errorf("there are words for %d reasons, and %d reasons", len(said), found)
	}
}

func TestMessage(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ reason, words, want string }{
		"what administrators read stays with them": {tenancyv1alpha1.ReasonImagePullFailed, "image registry.canary/a cannot be pulled", said[tenancyv1alpha1.ReasonImagePullFailed]},
		"what was asked for comes through":         {tenancyv1alpha1.ReasonQuotaExhausted, "missing is cpu 2", "missing is cpu 2"},
		"but nothing of the host":                  {tenancyv1alpha1.ReasonQuotaExhausted, "waiting for namespace vcluster-a to go", said[tenancyv1alpha1.ReasonQuotaExhausted]},
		"nor its version":                          {tenancyv1alpha1.ReasonVersionSkew, "Kubernetes v1.37.0 is newer than the host cluster's v1.36", said[tenancyv1alpha1.ReasonVersionSkew]},
		"a reason of a newer operator":             {"Newer", "canary", notYet},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := Of(tt.reason, tt.words); got != tt.want {
				t.Errorf("%q, not %q", got, tt.want)
			}
		})
	}
}

func TestOfEvent(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		warning             bool
		reason, words, want string
	}{
		"a phase":             {false, "Active", "the CloudSpace is ready for use", "the CloudSpace is ready for use"},
		"a phase that failed": {true, "Failed", "the CloudSpace is not provisioned", "the CloudSpace is not provisioned"},
		"a step":              {false, "FluxReady", "proven: FluxReady", "proven: FluxReady"},
		"a failure":           {true, "ImagePullFailed", "image canary cannot be pulled", said["ImagePullFailed"]},
		"a drift":             {true, "DriftFound", "canary", events["DriftFound"]},
		"a mended release":    {false, "ReleaseMended", "release canary", events["ReleaseMended"]},
		"a kubeconfig":        {true, "KubeconfigExpires", "the kubeconfig ends soon", "the kubeconfig ends soon"},
		"a newer warning":     {true, "Newer", "canary", notYet},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := OfEvent(tt.warning, tt.reason, tt.words); got != tt.want {
				t.Errorf("%q, not %q", got, tt.want)
			}
		})
	}
}
