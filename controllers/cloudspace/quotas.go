// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package cloudspace

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	configv1alpha1 "github.com/tantilium/cloud-runner/apis/config/v1alpha1"
	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
	"github.com/tantilium/cloud-runner/internal/names"
)

// The ResourceQuotas of a host namespace. The first counts all that is there, the others its control plane and all but that, by the
// PriorityClass: whatever a tenant runs, the share of the control plane is left to it.
const (
	quotaName             = names.HostQuota
	controlPlaneQuotaName = "cloudspace-control-plane"
	workloadQuotaName     = "cloudspace-workload"
)

// What a container gets that says nothing of what it needs, or the maximum, where that is less.
const (
	defaultRequestCPU              = "50m"
	defaultRequestMemory           = "64Mi"
	defaultRequestEphemeralStorage = "32Mi"
	defaultLimitCPU                = "500m"
	defaultLimitMemory             = "256Mi"
	defaultLimitEphemeralStorage   = "512Mi"
)

// The least that a container may ask for and be limited to: quotas count a limit of 0 as nothing, and a node takes it for none at all.
const (
	minCPU    = "1m"
	minMemory = "1Mi"
)

// quotas are the three of a host namespace, as the cache has them.
type quotas struct{ total, controlPlane, workloads *corev1.ResourceQuota }

func (q quotas) all() []*corev1.ResourceQuota {
	return []*corev1.ResourceQuota{q.total, q.controlPlane, q.workloads}
}

func (q quotas) complete() bool { return q.total != nil && q.controlPlane != nil && q.workloads != nil }

func (q quotas) none() bool { return q.total == nil && q.controlPlane == nil && q.workloads == nil }

// beside is what the total quota counts beside what pods request: volumes, Services, a node's disk, and objects, of which there can be
// some for each pod. Pods that ended are not counted, or they could keep the control plane's from being made.
func beside(granted v1alpha1.CloudSpaceResources, podStorage resource.Quantity, endpoint v1alpha1.EndpointType) corev1.ResourceList {
	pods := granted.Pods
	services := pods + 20
	hard := corev1.ResourceList{
		corev1.ResourceRequestsStorage:                          granted.Storage,
		corev1.ResourcePersistentVolumeClaims:                   number(pods),
		corev1.ResourceRequestsEphemeralStorage:                 times(podStorage, int64(pods)),
		corev1.ResourceLimitsEphemeralStorage:                   times(podStorage, int64(pods)),
		corev1.ResourceServices:                                 number(services),
		corev1.ResourceServicesNodePorts:                        number(0),
		corev1.ResourceServicesLoadBalancers:                    number(0),
		"count/secrets":                                         number(100 + 4*pods),
		"count/configmaps":                                      number(100 + 4*pods),
		"count/endpoints":                                       number(2 * services),
		"count/endpointslices.discovery.k8s.io":                 number(4 * services),
		corev1.ResourceName("count/leases.coordination.k8s.io"): number(20),
	}
	if endpoint == v1alpha1.EndpointLoadBalancer {
		// The CloudSpace's own, which has no node ports.
		hard[corev1.ResourceServicesLoadBalancers] = number(1)
	}
	return hard
}

// desiredQuota is the quota of all that is in the host namespace.
func desiredQuota(s *scope, hard corev1.ResourceList) *corev1.ResourceQuota {
	return &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: quotaName, Namespace: s.names.HostNamespace()},
		Spec:       corev1.ResourceQuotaSpec{Hard: hard},
	}
}

func desiredControlPlaneQuota(s *scope, hard corev1.ResourceList) *corev1.ResourceQuota {
	return desiredShare(s, controlPlaneQuotaName, corev1.ScopeSelectorOpIn, hard)
}

// desiredWorkloadQuota counts pods without a PriorityClass too.
func desiredWorkloadQuota(s *scope, hard corev1.ResourceList) *corev1.ResourceQuota {
	return desiredShare(s, workloadQuotaName, corev1.ScopeSelectorOpNotIn, hard)
}

func desiredShare(s *scope, name string, operator corev1.ScopeSelectorOperator, hard corev1.ResourceList) *corev1.ResourceQuota {
	quota := desiredQuota(s, hard)
	quota.Name = name
	quota.Spec.ScopeSelector = &corev1.ScopeSelector{MatchExpressions: []corev1.ScopedResourceSelectorRequirement{{
		ScopeName: corev1.ResourceQuotaScopePriorityClass, Operator: operator, Values: []string{names.ControlPlanePriorityClass},
	}}}
	return quota
}

// desiredLimits give containers that say nothing what the quotas need of them, and bound what one pod, or one volume, can be. The minimum
// is next to nothing: the syncer adds containers of its own to some pods, which need little.
func desiredLimits(s *scope, p plan) *corev1.LimitRange {
	most := p.largestPod()
	least := func(cpu, memory, ephemeralStorage string) corev1.ResourceList {
		return smaller(most, corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory),
			corev1.ResourceEphemeralStorage: resource.MustParse(ephemeralStorage),
		})
	}
	return &corev1.LimitRange{
		ObjectMeta: metav1.ObjectMeta{Name: limitsName, Namespace: s.names.HostNamespace()},
		Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{
			{
				Type:           corev1.LimitTypeContainer,
				DefaultRequest: least(defaultRequestCPU, defaultRequestMemory, defaultRequestEphemeralStorage),
				Default:        least(defaultLimitCPU, defaultLimitMemory, defaultLimitEphemeralStorage),
				Min:            corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(minCPU), corev1.ResourceMemory: resource.MustParse(minMemory)},
				Max:            most,
			},
			{Type: corev1.LimitTypePod, Max: most},
			{
				Type: corev1.LimitTypePersistentVolumeClaim,
				Max:  corev1.ResourceList{corev1.ResourceStorage: p.beside[corev1.ResourceRequestsStorage]},
			},
		}},
	}
}

// largestPod is the most that a pod may be limited to: all that workloads have, or a pod of the control plane where that is more.
func (p plan) largestPod() corev1.ResourceList {
	most := p.target.workloads
	for _, size := range p.sizes {
		most = larger(most, larger(perPod(size.ControlPlane), perPod(size.Etcd)))
		most = larger(most, perPod(kubernetesBinaries))
	}
	return corev1.ResourceList{
		corev1.ResourceCPU:              most[corev1.ResourceLimitsCPU],
		corev1.ResourceMemory:           most[corev1.ResourceLimitsMemory],
		corev1.ResourceEphemeralStorage: p.podStorage,
	}
}

// podStorage is the most that a pod may use of a node's disk: what the platform says, or the control plane where that is more. All pods
// together may use that times their number, so that no pod's disk is in the way of another.
func podStorage(sizes []configv1alpha1.Size, platform *configv1alpha1.PlatformConfig) resource.Quantity {
	most := platform.PodEphemeralStorage
	for _, size := range sizes {
		if own := ephemeralStorage(size); own.Cmp(most) > 0 {
			most = own
		}
	}
	return most
}
