// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import "k8s.io/apimachinery/pkg/api/resource"

// CloudSpaceUsage is what is used of a CloudSpace's resources: of CPU and memory, what pods request.
type CloudSpaceUsage struct {
	// cpu in cores.
	// +optional
	CPU ResourceUsage `json:"cpu,omitzero"`

	// memory in bytes.
	// +optional
	Memory ResourceUsage `json:"memory,omitzero"`

	// storage of volumes, in bytes.
	// +optional
	Storage ResourceUsage `json:"storage,omitzero"`

	// pods that have not ended.
	// +optional
	Pods ResourceUsage `json:"pods,omitzero"`
}

// ResourceUsage is what is used of one resource.
type ResourceUsage struct {
	// hard is all that there can be.
	// +required
	Hard resource.Quantity `json:"hard"`

	// controlPlane is what the control plane uses; of storage, the volumes of etcd.
	// +required
	ControlPlane resource.Quantity `json:"controlPlane"`

	// workloads is what everything else uses, CoreDNS and Flux included.
	// +required
	Workloads resource.Quantity `json:"workloads"`

	// free is what workloads can still use. The rest is kept for the control plane.
	// +required
	Free resource.Quantity `json:"free"`
}
