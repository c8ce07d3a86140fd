// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tenancyv1alpha1 "github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
)

// AccountSpec is what administrators of the platform set for a tenant.
type AccountSpec struct {
	// displayName is shown to people in place of the id.
	// +optional
	DisplayName string `json:"displayName,omitempty"`

	// members and what each may do with the tenant's CloudSpaces.
	// +optional
	// +listType=map
	// +listMapKey=kind
	// +listMapKey=name
	// +listMapKey=namespace
	Members []tenancyv1alpha1.Member `json:"members,omitempty"`
}

// AccountStatus is what the platform observed of a tenant.
type AccountStatus struct {
	// state in one word, of the tenant's default CloudSpace.
	// +optional
	State State `json:"state,omitempty"`

	// namespace of the tenant's CloudSpaces.
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// quota is what all CloudSpaces of the tenant may use together, what of it is reserved, and what is free.
	// +optional
	Quota tenancyv1alpha1.QuotaSums `json:"quota,omitzero"`

	// cloudSpaces counts the tenant's CloudSpaces.
	// +optional
	CloudSpaces tenancyv1alpha1.CloudSpaceCounts `json:"cloudSpaces,omitzero"`

	// timeline lists the states in the order they were entered, the newest last.
	// +optional
	// +listType=atomic
	Timeline []StateTransition `json:"timeline,omitempty"`
}

// Account is a tenant as its members see it. It is read-only: administrators of the platform change the Tenant of the same name.
//
// +genclient
// +genclient:nonNamespaced
// +genclient:onlyVerbs=get,list,watch
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="CloudSpaces",type=integer,JSONPath=`.status.cloudSpaces.total`
// +kubebuilder:printcolumn:name="Active",type=integer,JSONPath=`.status.cloudSpaces.active`
// +kubebuilder:printcolumn:name="CPU",type=string,JSONPath=`.status.quota.hard.cpu`
// +kubebuilder:printcolumn:name="CPU-Free",type=string,JSONPath=`.status.quota.free.cpu`
// +kubebuilder:printcolumn:name="Memory",type=string,JSONPath=`.status.quota.hard.memory`
// +kubebuilder:printcolumn:name="Memory-Free",type=string,JSONPath=`.status.quota.free.memory`
// +kubebuilder:printcolumn:name="Display-Name",type=string,JSONPath=`.spec.displayName`,priority=1
// +kubebuilder:printcolumn:name="Namespace",type=string,JSONPath=`.status.namespace`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Account struct {
	metav1.TypeMeta `json:",inline"`

	// metadata of the object; the name is the tenant id.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is what administrators of the platform set for the tenant.
	// +optional
	Spec AccountSpec `json:"spec,omitzero"`

	// status is what the platform observed.
	// +optional
	Status AccountStatus `json:"status,omitzero"`
}

// AccountList is a list of Accounts.
//
// +kubebuilder:object:root=true
type AccountList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`
	Items           []Account `json:"items"`
}
