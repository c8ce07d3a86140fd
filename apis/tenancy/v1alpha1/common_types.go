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

// AnnotationRetryRequested asks for a try at once, on a Tenant or a CloudSpace. Each new value is handled once.
const AnnotationRetryRequested = "tenancy.kubeopera.io/retry-requested"

// AnnotationGeneration stands on the quota of all that is in a host namespace, and is the generation of the CloudSpace whose spec its
// quotas and limits follow: from then on Kubernetes grants no more than that spec asks for.
const AnnotationGeneration = "tenancy.kubeopera.io/generation"

// AnnotationTemplate stands on a default CloudSpace and tells which template its spec was last set from. The spec is set
// again when the template changes; between, changes of the CloudSpace itself stay.
const AnnotationTemplate = "tenancy.kubeopera.io/template"

// AnnotationDefaultQuota stands on a TenantQuota that the platform made for a Tenant that had none: which default it has. Once its spec is
// another, it is the administrators' own.
const AnnotationDefaultQuota = "tenancy.kubeopera.io/default-quota"

// Finalizers that hold a Tenant or CloudSpace until nothing of it is left on the host cluster.
const (
	FinalizerTenant     = "tenancy.kubeopera.io/tenant"
	FinalizerCloudSpace = "tenancy.kubeopera.io/cloudspace"
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

// RetryStatus tells of tries that went wrong, and when the next one is.
type RetryStatus struct {
	// attempts that went wrong since the step that fails was last proven, or since a retry was asked for.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Attempts int32 `json:"attempts,omitempty"`

	// lastError is what the last of them failed with.
	// +optional
	LastError *RetryError `json:"lastError,omitempty"`

	// nextRetryTime is when it is tried again by itself.
	// +optional
	NextRetryTime *metav1.Time `json:"nextRetryTime,omitempty"`

	// lastHandledRequest is the value of the annotation tenancy.kubeopera.io/retry-requested that was handled last.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	LastHandledRequest string `json:"lastHandledRequest,omitempty"`
}

// RetryError is what a try failed with.
type RetryError struct {
	// step is the condition type of the step that failed.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Step string `json:"step"`

	// reason in one word; docs/operations.md lists them.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Reason string `json:"reason"`

	// message for people.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`

	// class of the error: Transient errors are expected to end by themselves, Terminal ones need something to change.
	// +required
	Class ErrorClass `json:"class"`

	// time of the failure.
	// +required
	Time metav1.Time `json:"time"`
}

// ErrorClass says whether an error can end by itself.
// +kubebuilder:validation:Enum=Transient;Terminal
type ErrorClass string

// The classes of errors.
const (
	ErrorTransient ErrorClass = "Transient"
	ErrorTerminal  ErrorClass = "Terminal"
)
