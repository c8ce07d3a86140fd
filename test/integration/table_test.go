// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
)

// table asks as kubectl get does.
func table(t *testing.T, path string) *metav1.Table {
	t.Helper()
	set, err := kubernetes.NewForConfig(adminConfig)
	if err != nil {
		t.Fatal(err)
	}
	text, err := set.RESTClient().Get().AbsPath("/apis/tenancy.kubeopera.io/v1alpha1"+path).
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").Param("includeObject", "None").DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got := &metav1.Table{}
	if err := json.Unmarshal(text, got); err != nil {
		t.Fatal(err)
	}
	return got
}

// What kubectl get prints: each column in its order, with a value that a person can use. A column of priority 1 is for -o wide.
func TestColumns(t *testing.T) {
	t.Parallel()
	create(t, &v1alpha1.TenantQuota{ObjectMeta: named("", "columns"), Spec: v1alpha1.TenantQuotaSpec{Hard: quota(map[string]string{
		"cloudspaces": "4", "cpu": "16", "memory": "32Gi", "storage": "100Gi", "pods": "200",
	})}})
	object := reach(t, create(t, tenant("columns", func(o *v1alpha1.Tenant) { o.Spec.DisplayName = "The Columns" })), "Ready")
	tests := []struct {
		what, path string
		// want are patterns by column, in order; a star before a name means that it is for -o wide.
		want [][2]string
	}{
		{"a Tenant", "/tenants/columns", [][2]string{
			{"Name", "^columns$"},
			{"Phase", "^Ready$"},
			{"Since", `^\d+s$`},
			{"CloudSpaces", "^1$"},
			{"Active", "^1$"},
			{"Message", "^$"},
			{"*Name", "^The Columns$"},
			{"*Namespace", "^tenant-columns$"},
			{"*Kubeconfig", "^tenant-columns-kubeconfig$"},
			{"*CPU-Free", "^14$"},
			{"*Memory-Free", "^28Gi$"},
			{"*Attempts", "^$"},
			{"*Next-Retry", "^$"},
			{"Age", `^\d+s$`},
		}},
		{"a CloudSpace", "/namespaces/tenant-columns/cloudspaces/default", [][2]string{
			{"Name", "^default$"},
			{"Phase", "^Active$"},
			{"Since", `^\d+s$`},
			{"Version", `^v1\.36\.0$`},
			{"CPU", "^2$"},
			{"Memory", "^4Gi$"},
			{"CPU-Free", `^\d+m?$`},
			{"Memory-Free", `^\d+Mi$`},
			{"Kubeconfig-Expires", `^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z$`},
			{"Message", "^$"},
			{"*Storage", "^10Gi$"},
			{"*Size", "^Small$"},
			{"*VCluster", `^0\.36\.1$`},
			{"*Up-To-Date", "^Succeeded$"},
			{"*Flux", `^0\.1\.0$`},
			{"*Host-Namespace", "^vcluster-columns$"},
			{"*Endpoint", `^https://columns\.vcluster-columns\.svc:443$`},
			{"*Attempts", "^$"},
			{"*Next-Retry", "^$"},
			{"Age", `^\d+s$`},
		}},
		{"a TenantQuota", "/tenantquotas/columns", [][2]string{
			{"Name", "^columns$"},
			{"CloudSpaces", "^1/4$"},
			{"CPU", "^2/16$"},
			{"Memory", "^4Gi/32Gi$"},
			{"Storage", "^10Gi/100Gi$"},
			{"Pods", "^50/200$"},
			{"Waiting", "^$"},
			{"Age", `^\d+s$`},
		}},
	}
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			got := table(t, tt.path)
			var header, want []string
			for _, column := range got.ColumnDefinitions {
				header = append(header, strings.Repeat("*", int(column.Priority))+column.Name)
			}
			for _, column := range tt.want {
				want = append(want, column[0])
			}
			if strings.Join(header, " ") != strings.Join(want, " ") {
				t.Fatalf("columns are %v, want %v", header, want)
			}
			for i, column := range tt.want {
				cell := got.Rows[0].Cells[i]
				if cell == nil {
					cell = ""
				}
				if text := fmt.Sprint(cell); !regexp.MustCompile(column[1]).MatchString(text) {
					t.Errorf("column %s shows %q, want %s", column[0], text, column[1])
				}
			}
		})
	}
	_ = object
}

// What a person sees while it does not work: since when, and why.
func TestColumnsOfWhatHasFailed(t *testing.T) {
	t.Parallel()
	create(t, namespace("vcluster-columns-failed"))
	object := reach(t, create(t, tenant("columns-failed")), "Failed")
	cells := table(t, "/tenants/"+object.Name).Rows[0].Cells
	if cells[1] != "Failed" || !regexp.MustCompile(`^\d+s$`).MatchString(fmt.Sprint(cells[2])) ||
		cells[5] != "Namespace vcluster-columns-failed exists and was not made for this object; it is left alone" {
		t.Errorf("the row is %v", cells)
	}
}
