// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package cloudspace

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	configv1alpha1 "github.com/tantilium/cloud-runner/apis/config/v1alpha1"
	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
	"github.com/tantilium/cloud-runner/internal/step"
)

// fluxInside is what the chart of Flux inside asks for in all, as charts/cloudspace-flux/values.yaml says.
var fluxInside = requirements("60m", "144Mi", "750m", "768Mi")

// surge is how many control planes more than wanted run during a rolling update.
const surge = 1

// fits tells whether a CloudSpace has room for its fixed parts. Without room a rolling update would never end: the new
// control-plane pod starts before the old one ends, and the quota would refuse it for ever.
func fits(asked v1alpha1.CloudSpaceSpec, size configv1alpha1.Size, factors configv1alpha1.LimitFactors) error {
	cpu := minimum(membersOf(asked.ControlPlane), size, corev1.ResourceCPU, factors.CPU, resource.Milli)
	memory := minimum(membersOf(asked.ControlPlane), size, corev1.ResourceMemory, factors.Memory, resource.Scale(0))
	if asked.Resources.CPU.Cmp(cpu) >= 0 && asked.Resources.Memory.Cmp(memory) >= 0 {
		return nil
	}
	return step.Terminal(v1alpha1.ReasonResourcesTooSmall,
		fmt.Sprintf("resources must have at least %s CPU and %s memory for a control plane of this size", cpu.String(), memory.String()))
}

// minimum of a control plane is the larger of the sum of requests, and the sum of limits by the factor that caps them, in whole units of a scale.
func minimum(of members, size configv1alpha1.Size, name corev1.ResourceName, factor int64, scale resource.Scale) resource.Quantity {
	var requests, limits int64
	for _, part := range []struct {
		count     int32
		resources corev1.ResourceRequirements
	}{{of.controlPlane + surge, size.ControlPlane}, {of.etcd, size.Etcd}, {1, size.CoreDNS}, {1, fluxInside}} {
		request, limit := part.resources.Requests[name], part.resources.Limits[name]
		requests += int64(part.count) * request.ScaledValue(scale)
		limits += int64(part.count) * limit.ScaledValue(scale)
	}
	least := resource.NewScaledQuantity(max(requests, (limits+factor-1)/factor), scale)
	if name == corev1.ResourceMemory {
		least.Format = resource.BinarySI
	}
	return *least
}
