// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package tenantquota

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
	"github.com/tantilium/cloud-runner/internal/names"
	"github.com/tantilium/cloud-runner/internal/quota"
)

var (
	quotaDescription = prometheus.NewDesc("kubeopera_tenant_quota",
		"What a tenant may use (hard), what is reserved for its CloudSpaces (reserved), and what they use (used): counts, cores or bytes.",
		[]string{"tenant", "resource", "type"}, nil)
	waitingDescription = prometheus.NewDesc("kubeopera_tenant_quota_waiting",
		"CloudSpaces that wait for room in their tenant's quota.", []string{"tenant"}, nil)
)

// Collector tells of all TenantQuotas as the caches have them.
type Collector struct {
	Reader client.Reader
}

// Describe names what Collect tells.
func (c Collector) Describe(descriptions chan<- *prometheus.Desc) {
	descriptions <- quotaDescription
	descriptions <- waitingDescription
}

// Collect tells hard, reserved and used of each resource of each tenant, and how many CloudSpaces wait.
func (c Collector) Collect(collected chan<- prometheus.Metric) {
	list, hosts := &v1alpha1.TenantQuotaList{}, &corev1.ResourceQuotaList{}
	for _, l := range []client.ObjectList{list, hosts} {
		if err := c.Reader.List(context.Background(), l, client.UnsafeDisableDeepCopy); err != nil {
			return
		}
	}
	used := usedBy(hosts.Items)
	for i := range list.Items {
		object := &list.Items[i]
		for kind, amounts := range map[string]v1alpha1.QuotaAmounts{
			"hard": object.Status.Hard, "reserved": object.Status.Reserved, "used": used[object.Name],
		} {
			for name, amount := range amounts {
				collected <- prometheus.MustNewConstMetric(quotaDescription, prometheus.GaugeValue, amount.AsApproximateFloat64(), object.Name, string(name), kind)
			}
		}
		collected <- prometheus.MustNewConstMetric(waitingDescription, prometheus.GaugeValue, float64(object.Status.WaitingCount), object.Name)
	}
}

// usedBy sums up what is used in the host namespaces of each tenant.
func usedBy(hosts []corev1.ResourceQuota) map[string]v1alpha1.QuotaAmounts {
	used := map[string]v1alpha1.QuotaAmounts{}
	for i := range hosts {
		if tenant := hosts[i].Labels[v1alpha1.LabelTenant]; hosts[i].Name == names.HostQuota && hosts[i].Labels[v1alpha1.LabelCloudSpace] != "" {
			used[tenant] = quota.Add(used[tenant], quota.Used(&hosts[i]))
		}
	}
	return used
}
