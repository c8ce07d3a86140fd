// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Labels that stand on every object the platform makes.
const (
	// LabelTenant carries the tenant id. On a namespace it is reserved to administrators.
	LabelTenant = "tenancy.kubeopera.io/tenant"
	// LabelCloudSpace carries the name of the CloudSpace within its tenant.
	LabelCloudSpace = "tenancy.kubeopera.io/cloudspace"
	// LabelOwnerUID carries the UID of the Tenant or CloudSpace an object was made for. Objects without it, or with the
	// UID of another owner, are never touched, whatever their name.
	LabelOwnerUID = "tenancy.kubeopera.io/owner-uid"
)

// AnnotationTemplate stands on a default CloudSpace and tells which template its spec was last set from. The spec is set
// again when the template changes; between, changes of the CloudSpace itself stay.
const AnnotationTemplate = "tenancy.kubeopera.io/template"

// Finalizers that hold a Tenant or CloudSpace until nothing of it is left on the host cluster.
const (
	FinalizerTenant     = "tenancy.kubeopera.io/tenant"
	FinalizerCloudSpace = "tenancy.kubeopera.io/cloudspace"
)

// Groups and the name prefix of the people and programs of a tenant, as tokens carry them.
const (
	GroupSuperAdmins = "kubeopera:super-admins"
	GroupCustomers   = "kubeopera:customers"
)

// MaxTimeline bounds status.timeline: the oldest entries go first.
const MaxTimeline = 20

// PhaseTransition records when an object entered a phase.
type PhaseTransition struct {
	// phase that was entered.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	Phase string `json:"phase"`

	// time the phase was entered.
	// +required
	Time metav1.Time `json:"time"`
}
