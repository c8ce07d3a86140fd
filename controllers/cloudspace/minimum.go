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

// smallApp is the least that is of use to a tenant: one container that says nothing of what it needs.
var smallApp = requirements(defaultRequestCPU, defaultRequestMemory, defaultLimitCPU, defaultLimitMemory)

// fits tells whether resources have room for a control plane and for what always runs beside it. Without room a rolling update would
// never end: the new control-plane pod starts before the old one ends, and the quota would refuse it for ever.
func fits(resources v1alpha1.CloudSpaceResources, controlPlane v1alpha1.ControlPlane, size configv1alpha1.Size, factors configv1alpha1.LimitFactors) error {
	all := sum(controlPlaneShare(membersOf(controlPlane), size), fixedWorkloads(size))
	cpu := least(all[corev1.ResourceRequestsCPU], all[corev1.ResourceLimitsCPU], factors.CPU, resource.Milli, resource.DecimalSI)
	memory := least(all[corev1.ResourceRequestsMemory], all[corev1.ResourceLimitsMemory], factors.Memory, resource.Scale(0), resource.BinarySI)
	pods := all[corev1.ResourcePods]
	switch {
	case resources.CPU.Cmp(cpu) < 0 || resources.Memory.Cmp(memory) < 0:
		return step.Terminal(v1alpha1.ReasonResourcesTooSmall,
			fmt.Sprintf("resources must have at least %s CPU and %s memory for a control plane of this size", cpu.String(), memory.String()))
	case pods.CmpInt64(int64(resources.Pods)) > 0:
		return step.Terminal(v1alpha1.ReasonResourcesTooSmall, fmt.Sprintf("resources must have at least %s pods", pods.String()))
	default:
		return nil
	}
}

// least is the larger of the sum of requests, and the sum of limits by the factor that caps them, in whole units of a scale.
func least(requests, limits resource.Quantity, factor int64, scale resource.Scale, format resource.Format) resource.Quantity {
	byLimits := (limits.ScaledValue(scale) + factor - 1) / factor
	quantity := resource.NewScaledQuantity(max(requests.ScaledValue(scale), byLimits), scale)
	quantity.Format = format
	return *quantity
}
