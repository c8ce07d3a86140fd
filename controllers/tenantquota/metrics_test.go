// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package tenantquota

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
)

func TestWhatTheMetricsTellOfQuotas(t *testing.T) {
	cpu := func(amount string) v1alpha1.QuotaAmounts {
		return v1alpha1.QuotaAmounts{v1alpha1.QuotaCPU: resource.MustParse(amount)}
	}
	quota := tenantQuota("8")
	quota.Status.Hard, quota.Status.Reserved, quota.Status.WaitingCount = cpu("8"), cpu("3"), 2
	objects := all(one(quota), host("uid-dev", "3", "1"))
	for _, o := range objects {
		if used, ok := o.(*corev1.ResourceQuota); ok {
			used.Status.Used = corev1.ResourceList{corev1.ResourceRequestsCPU: resource.MustParse("1500m")}
		}
	}
	// The share of workloads is in the total already, and the bound of objects is none of a host namespace.
	share, bound := objects[2].DeepCopyObject().(*corev1.ResourceQuota), objects[2].DeepCopyObject().(*corev1.ResourceQuota)
	share.Name, bound.Namespace, bound.Labels = "cloudspace-workload", "tenant-alice", map[string]string{v1alpha1.LabelTenant: "alice"}
	w, _ := newWorld(t, nil, append(objects, share, bound))
	want := `
# HELP kubeopera_tenant_quota What a tenant may use (hard), what is reserved for its CloudSpaces (reserved), and what they use (used): counts, cores or bytes.
# TYPE kubeopera_tenant_quota gauge
kubeopera_tenant_quota{resource="cloudspaces",tenant="alice",type="used"} 1
kubeopera_tenant_quota{resource="cpu",tenant="alice",type="hard"} 8
kubeopera_tenant_quota{resource="cpu",tenant="alice",type="reserved"} 3
kubeopera_tenant_quota{resource="cpu",tenant="alice",type="used"} 1.5
kubeopera_tenant_quota{resource="memory",tenant="alice",type="used"} 0
kubeopera_tenant_quota{resource="pods",tenant="alice",type="used"} 0
kubeopera_tenant_quota{resource="storage",tenant="alice",type="used"} 0
# HELP kubeopera_tenant_quota_waiting CloudSpaces that wait for room in their tenant's quota.
# TYPE kubeopera_tenant_quota_waiting gauge
kubeopera_tenant_quota_waiting{tenant="alice"} 2
`
	if err := testutil.CollectAndCompare(Collector{Reader: w.Client}, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}
