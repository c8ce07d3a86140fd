// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package quota

import (
	"fmt"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
)

// Resources are all that a TenantQuota counts, in the order in which they are told.
var Resources = []v1alpha1.QuotaResource{
	v1alpha1.QuotaCloudSpaces, v1alpha1.QuotaCPU, v1alpha1.QuotaMemory, v1alpha1.QuotaStorage, v1alpha1.QuotaPods,
}

// Of are the amounts that a CloudSpace with these resources takes: itself, and all that it may request.
func Of(asked v1alpha1.CloudSpaceResources) v1alpha1.QuotaAmounts {
	return v1alpha1.QuotaAmounts{
		v1alpha1.QuotaCloudSpaces: *resource.NewQuantity(1, resource.DecimalSI),
		v1alpha1.QuotaCPU:         asked.CPU.DeepCopy(),
		v1alpha1.QuotaMemory:      asked.Memory.DeepCopy(),
		v1alpha1.QuotaStorage:     asked.Storage.DeepCopy(),
		v1alpha1.QuotaPods:        *resource.NewQuantity(int64(asked.Pods), resource.DecimalSI),
	}
}

// Granted are the resources that a CloudSpace may use of those that it asks for, with these amounts reserved for it.
func Granted(asked v1alpha1.CloudSpaceResources, reserved v1alpha1.QuotaAmounts) v1alpha1.CloudSpaceResources {
	pods := reserved[v1alpha1.QuotaPods]
	return v1alpha1.CloudSpaceResources{
		CPU:     least(asked.CPU, reserved[v1alpha1.QuotaCPU]),
		Memory:  least(asked.Memory, reserved[v1alpha1.QuotaMemory]),
		Storage: least(asked.Storage, reserved[v1alpha1.QuotaStorage]),
		Pods:    int32(min(pods.Value(), int64(asked.Pods))), //nolint:gosec // the smaller of the two is an int32.
	}
}

// hostResources are what the ResourceQuota of a host namespace calls what a TenantQuota counts.
var hostResources = map[v1alpha1.QuotaResource]corev1.ResourceName{
	v1alpha1.QuotaCPU:     corev1.ResourceRequestsCPU,
	v1alpha1.QuotaMemory:  corev1.ResourceRequestsMemory,
	v1alpha1.QuotaStorage: corev1.ResourceRequestsStorage,
	v1alpha1.QuotaPods:    corev1.ResourcePods,
}

// Held are the amounts that a CloudSpace has on the host cluster: its namespace, and what the namespace's quota lets it use, now or as
// soon as Kubernetes takes the quota up. The quota may be nil.
func Held(total *corev1.ResourceQuota) v1alpha1.QuotaAmounts {
	held := v1alpha1.QuotaAmounts{v1alpha1.QuotaCloudSpaces: *resource.NewQuantity(1, resource.DecimalSI)}
	if total == nil {
		return held
	}
	for name, host := range hostResources {
		held[name] = most(total.Spec.Hard[host], total.Status.Hard[host])
	}
	return held
}

// Used are the amounts that are in use in a host namespace, of those that its quota counts.
func Used(total *corev1.ResourceQuota) v1alpha1.QuotaAmounts {
	used := v1alpha1.QuotaAmounts{v1alpha1.QuotaCloudSpaces: *resource.NewQuantity(1, resource.DecimalSI)}
	for name, host := range hostResources {
		used[name] = total.Status.Used[host].DeepCopy()
	}
	return used
}

// Add is the sum of amounts, with every resource in it.
func Add(a, b v1alpha1.QuotaAmounts) v1alpha1.QuotaAmounts {
	sum := v1alpha1.QuotaAmounts{}
	for _, name := range Resources {
		total := amount(a, name)
		total.Add(b[name])
		sum[name] = total
	}
	return sum
}

// amount is a copy: a Quantity shares memory with those that it was copied from.
func amount(of v1alpha1.QuotaAmounts, name v1alpha1.QuotaResource) resource.Quantity {
	return of[name].DeepCopy()
}

// larger takes the larger of each.
func larger(a, b v1alpha1.QuotaAmounts) v1alpha1.QuotaAmounts {
	both := maps.Clone(a)
	if both == nil {
		both = v1alpha1.QuotaAmounts{}
	}
	for name := range b {
		both[name] = most(a[name], b[name])
	}
	return both
}

// smaller takes the smaller of each that a names; what b does not name is zero there.
func smaller(a, b v1alpha1.QuotaAmounts) v1alpha1.QuotaAmounts {
	both := v1alpha1.QuotaAmounts{}
	for name := range a {
		both[name] = least(a[name], b[name])
	}
	return both
}

// beyond is what a has more of than b, resource by resource; one that it has no more of is left out.
func beyond(a, b v1alpha1.QuotaAmounts) v1alpha1.QuotaAmounts {
	more := v1alpha1.QuotaAmounts{}
	for name := range a {
		difference := amount(a, name)
		difference.Sub(b[name])
		if difference.Sign() > 0 {
			more[name] = difference
		}
	}
	return more
}

// less is what is left of those resources that a names, when b is taken away; never below zero.
func less(a, b v1alpha1.QuotaAmounts) v1alpha1.QuotaAmounts {
	left := v1alpha1.QuotaAmounts{}
	for name := range a {
		difference := amount(a, name)
		difference.Sub(b[name])
		if difference.Sign() < 0 {
			difference = resource.Quantity{Format: difference.Format}
		}
		left[name] = difference
	}
	return left
}

// lacking is what some of free does not have of needed. A resource that free does not name is not limited.
func lacking(needed, free v1alpha1.QuotaAmounts) v1alpha1.QuotaAmounts {
	limited := v1alpha1.QuotaAmounts{}
	for name := range needed {
		if _, ok := free[name]; ok {
			limited[name] = needed[name]
		}
	}
	return beyond(limited, free)
}

func least(a, b resource.Quantity) resource.Quantity {
	if b.Cmp(a) < 0 {
		return b.DeepCopy()
	}
	return a.DeepCopy()
}

func most(a, b resource.Quantity) resource.Quantity {
	if b.Cmp(a) > 0 {
		return b.DeepCopy()
	}
	return a.DeepCopy()
}

// Free is what is left of a quota, never below zero; a resource that is not limited is left out.
func Free(hard, reserved v1alpha1.QuotaAmounts) v1alpha1.QuotaAmounts { return less(hard, reserved) }

// Over is what is reserved beyond a quota, of the resources that it limits.
func Over(hard, reserved v1alpha1.QuotaAmounts) v1alpha1.QuotaAmounts { return lacking(reserved, hard) }

// Lesser takes the smaller of each that both have.
func Lesser(a, b v1alpha1.QuotaAmounts) v1alpha1.QuotaAmounts { return smaller(a, b) }

// Text tells amounts to people, such as "cpu 2, memory 4Gi".
func Text(amounts v1alpha1.QuotaAmounts) string {
	var parts []string
	for _, name := range Resources {
		if amount, ok := amounts[name]; ok {
			parts = append(parts, fmt.Sprintf("%s %s", name, amount.String()))
		}
	}
	return strings.Join(parts, ", ")
}

// Covers tells whether amounts have all that is needed.
func Covers(amounts, needed v1alpha1.QuotaAmounts) bool { return len(beyond(needed, amounts)) == 0 }
