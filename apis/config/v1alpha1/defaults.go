// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tenancyv1alpha1 "github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
)

// SetDefaults fills in what a PlatformConfig may leave out.
func SetDefaults(c *PlatformConfig) {
	defaultTo(&c.LimitFactors.CPU, 3)
	defaultTo(&c.LimitFactors.Memory, 2)
	if c.PodEphemeralStorage.IsZero() {
		c.PodEphemeralStorage = resource.MustParse("4Gi")
	}
	if c.TenantQuota.Hard == nil {
		c.TenantQuota.Hard = tenancyv1alpha1.QuotaAmounts{
			tenancyv1alpha1.QuotaCloudSpaces: resource.MustParse("4"),
			tenancyv1alpha1.QuotaCPU:         resource.MustParse("16"),
			tenancyv1alpha1.QuotaMemory:      resource.MustParse("32Gi"),
			tenancyv1alpha1.QuotaStorage:     resource.MustParse("100Gi"),
			tenancyv1alpha1.QuotaPods:        resource.MustParse("200"),
		}
	}
	defaultNetwork(&c.Network)
	defaultDuration(&c.Deadlines.Namespace, 2*time.Minute)
	defaultDuration(&c.Deadlines.ControlPlane, 15*time.Minute)
	defaultDuration(&c.Deadlines.Kubeconfig, 5*time.Minute)
	defaultDuration(&c.Deadlines.Flux, 10*time.Minute)
	defaultDuration(&c.Deadlines.InnerRelease, time.Minute)
	defaultDuration(&c.Deadlines.Release, 5*time.Minute)
	defaultDuration(&c.Backoff.Base, 5*time.Second)
	defaultDuration(&c.Backoff.Max, 5*time.Minute)
	if c.Rollout.MaxConcurrent == 0 {
		c.Rollout.MaxConcurrent = 1
	}
	defaultDuration(&c.Helm.Interval, time.Hour)
	defaultDuration(&c.Helm.Timeout, 10*time.Minute)
	if c.Endpoint.Hostname != nil {
		defaultRoute(c.Endpoint.Hostname)
	}
}

// defaultRoute passes TLS through ingress-nginx unless something else is said.
func defaultRoute(h *HostnameEndpoint) {
	if h.TLSRoute == nil && h.Ingress == nil {
		h.Ingress = &IngressEndpoint{}
	}
	if h.Ingress != nil && h.Ingress.Annotations == nil {
		h.Ingress.Annotations = map[string]string{
			"nginx.ingress.kubernetes.io/ssl-passthrough":  "true",
			"nginx.ingress.kubernetes.io/backend-protocol": "HTTPS",
			"nginx.ingress.kubernetes.io/ssl-redirect":     "true",
		}
	}
}

func defaultTo(value *int64, fallback int64) {
	if *value == 0 {
		*value = fallback
	}
}

func defaultDuration(value *metav1.Duration, fallback time.Duration) {
	if value.Duration == 0 {
		value.Duration = fallback
	}
}
