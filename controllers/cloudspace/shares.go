// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package cloudspace

import (
	"encoding/json"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	configv1alpha1 "github.com/tantilium/cloud-runner/apis/config/v1alpha1"
	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
)

// perPods is what a quota with the scope of a PriorityClass can count; Kubernetes knows no other resource there.
var perPods = []corev1.ResourceName{
	corev1.ResourceRequestsCPU, corev1.ResourceRequestsMemory, corev1.ResourceLimitsCPU, corev1.ResourceLimitsMemory, corev1.ResourcePods,
}

// surge is how many control planes more than wanted run during a rolling update.
const surge = 1

// kubernetesBinaries is what the init container asks for that brings Kubernetes into the pod of a control plane.
var kubernetesBinaries = requirements("40m", "64Mi", "500m", "256Mi")

// shares are what the three quotas allow of what they count of pods: control plane and workloads are all of the total.
type shares struct{ total, controlPlane, workloads corev1.ResourceList }

// forPods is what pods may use of what a CloudSpace was granted.
func forPods(granted v1alpha1.CloudSpaceResources, factors configv1alpha1.LimitFactors) corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceRequestsCPU:    granted.CPU,
		corev1.ResourceLimitsCPU:      times(granted.CPU, factors.CPU),
		corev1.ResourceRequestsMemory: granted.Memory,
		corev1.ResourceLimitsMemory:   times(granted.Memory, factors.Memory),
		corev1.ResourcePods:           number(granted.Pods),
	}
}

// split gives the control plane its share, as far as there is so much, and workloads the rest.
func split(total, share corev1.ResourceList) shares {
	controlPlane := smaller(share, total)
	return shares{total: total, controlPlane: controlPlane, workloads: minus(total, controlPlane)}
}

// perPod is what a quota counts of a pod with these requests and limits.
func perPod(r corev1.ResourceRequirements) corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceRequestsCPU:    r.Requests[corev1.ResourceCPU],
		corev1.ResourceLimitsCPU:      r.Limits[corev1.ResourceCPU],
		corev1.ResourceRequestsMemory: r.Requests[corev1.ResourceMemory],
		corev1.ResourceLimitsMemory:   r.Limits[corev1.ResourceMemory],
		corev1.ResourcePods:           number(1),
	}
}

// controlPlaneShare is the most that a control plane of a size uses: all members, and the one that is there before an earlier one ends.
func controlPlaneShare(of members, size configv1alpha1.Size) corev1.ResourceList {
	pod := larger(perPod(size.ControlPlane), perPod(kubernetesBinaries))
	return sum(multiple(pod, int64(of.controlPlane+surge)), multiple(perPod(size.Etcd), int64(of.etcd)))
}

// fixedWorkloads are the pods that every CloudSpace runs among its workloads, and a small one of the tenant's.
func fixedWorkloads(size configv1alpha1.Size) corev1.ResourceList {
	flux := perPod(fluxInside)
	flux[corev1.ResourcePods] = *resource.NewQuantity(int64(len(fluxDeployments)), resource.DecimalSI)
	return sum(perPod(size.CoreDNS), flux, perPod(smallApp))
}

// runningSize is the size that the release of a control plane has now.
func runningSize(release *helmv2.HelmRelease) (size configv1alpha1.Size, ok bool) {
	if release == nil || release.Spec.Values == nil {
		return size, false
	}
	var values Values
	if err := json.Unmarshal(release.Spec.Values.Raw, &values); err != nil {
		return size, false
	}
	size.ControlPlane = values.ControlPlane.StatefulSet.Resources
	size.Etcd = values.ControlPlane.BackingStore.Etcd.Deploy.StatefulSet.Resources
	size.CoreDNS = values.ControlPlane.CoreDNS.Deployment.Resources
	return size, len(size.ControlPlane.Limits) > 0
}

// chartEphemeralStorage is the limit that the vCluster chart gives a control plane whose size names none.
var chartEphemeralStorage = resource.MustParse("10Gi")

// ephemeralStorage is the most that a pod of a control plane of a size may use of a node's disk.
func ephemeralStorage(size configv1alpha1.Size) resource.Quantity {
	if limit, ok := size.ControlPlane.Limits[corev1.ResourceEphemeralStorage]; ok {
		return limit
	}
	return chartEphemeralStorage
}

// sizes are those that a CloudSpace must have room for: the one that its control plane has, and the one that it is to get.
func (r *Reconciler) sizes(s *scope) []configv1alpha1.Size {
	var sizes []configv1alpha1.Size
	if running, ok := runningSize(s.observed.controlPlane); ok {
		sizes = append(sizes, running)
	}
	wanted, ok := r.Platform.Sizes[string(s.object.Spec.ControlPlane.Size)]
	if ok && (len(sizes) == 0 || fits(s.granted, s.object.Spec.ControlPlane, wanted, r.Platform.LimitFactors) == nil) {
		sizes = append(sizes, wanted)
	}
	return sizes
}
