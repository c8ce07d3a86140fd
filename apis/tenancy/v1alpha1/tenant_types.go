// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TenantPhase is a one-word summary of a Tenant's conditions. It follows the default CloudSpace.
// +kubebuilder:validation:Enum=Pending;Provisioning;InstallingFlux;Ready;Failed;Suspended;Deleting
type TenantPhase string

// The phases of a Tenant, each the same as the default CloudSpace's; Active there is Ready here.
const (
	TenantPending        TenantPhase = "Pending"
	TenantProvisioning   TenantPhase = "Provisioning"
	TenantInstallingFlux TenantPhase = "InstallingFlux"
	TenantReady          TenantPhase = "Ready"
	TenantFailed         TenantPhase = "Failed"
	TenantSuspended      TenantPhase = "Suspended"
	TenantDeleting       TenantPhase = "Deleting"
)

// MemberKind says what a member is.
// +kubebuilder:validation:Enum=User;Group;ServiceAccount
type MemberKind string

// The kinds of members.
const (
	MemberUser           MemberKind = "User"
	MemberGroup          MemberKind = "Group"
	MemberServiceAccount MemberKind = "ServiceAccount"
)

// MemberRole says what a member may do with the tenant's CloudSpaces.
// +kubebuilder:validation:Enum=Owner;Editor;Viewer
type MemberRole string

// The roles of members: an Owner creates, changes and deletes CloudSpaces, an Editor changes them, a Viewer sees them.
const (
	MemberOwner  MemberRole = "Owner"
	MemberEditor MemberRole = "Editor"
	MemberViewer MemberRole = "Viewer"
)

// Member is a user, a group or a ServiceAccount with a role in a tenant.
//
// +kubebuilder:validation:XValidation:rule="(self.kind == 'ServiceAccount') == (has(self.__namespace__) && self.__namespace__.size() > 0)",message="a ServiceAccount needs a namespace; a User or Group has none"
// +kubebuilder:validation:XValidation:rule="self.kind == 'ServiceAccount' || self.name.startsWith('kubeopera:')",message="the name of a User or Group must start with kubeopera:"
// +kubebuilder:validation:XValidation:rule="self.kind != 'Group' || self.name.matches('^kubeopera:tenant:[a-z]([a-z0-9]|-[a-z0-9])*(:[!-9;-~]+)?$')",message="only groups of a tenant, kubeopera:tenant:<id> or kubeopera:tenant:<id>:<group>, can be members"
// +kubebuilder:validation:XValidation:rule="self.kind != 'ServiceAccount' || !format.dns1123Subdomain().validate(self.name).hasValue()",message="the name of a ServiceAccount must consist of lower case letters, digits, dashes and dots"
// +kubebuilder:validation:XValidation:rule="self.kind != 'ServiceAccount' || !format.dns1123Label().validate(self.__namespace__).hasValue()",message="the namespace of a ServiceAccount must consist of lower case letters, digits and dashes"
type Member struct {
	// kind of the member: User, Group or ServiceAccount.
	// +required
	Kind MemberKind `json:"kind"`

	// name of the member: kubeopera:<sub> for a User, kubeopera:tenant:<id>[:<group>] for a Group.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[^\\\\p{Cc}\\\\p{Zl}\\\\p{Zp}\\\\x{202A}-\\\\x{202E}\\\\x{2066}-\\\\x{2069}]*$')",message="the name of a member cannot contain control characters, line breaks, or characters that change the direction of text"
	Name string `json:"name"`

	// namespace of a ServiceAccount; empty for others.
	// +optional
	// +kubebuilder:default=""
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace"`

	// role of the member: Owner, Editor or Viewer.
	// +required
	Role MemberRole `json:"role"`
}

// TenantSpec is what an administrator sets for a customer.
type TenantSpec struct {
	// displayName is shown to people in place of the id.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[^\\\\p{Cc}\\\\p{Zl}\\\\p{Zp}\\\\x{202A}-\\\\x{202E}\\\\x{2066}-\\\\x{2069}]*$')",message="displayName cannot contain control characters, line breaks, or characters that change the direction of text"
	DisplayName string `json:"displayName,omitempty"`

	// members and what each may do with the tenant's CloudSpaces.
	// +optional
	// +listType=map
	// +listMapKey=kind
	// +listMapKey=name
	// +listMapKey=namespace
	// +kubebuilder:validation:MaxItems=500
	Members []Member `json:"members,omitempty"`

	// defaultCloudSpace is the CloudSpace that the tenant owns from the start, always named default.
	// +optional
	// +kubebuilder:default={}
	DefaultCloudSpace DefaultCloudSpace `json:"defaultCloudSpace,omitzero"`

	// deletionProtection refuses the deletion of the Tenant until it is false again. CloudSpaces have their own.
	// +optional
	DeletionProtection bool `json:"deletionProtection,omitempty"`
}

// DefaultCloudSpace shapes the CloudSpace that a tenant owns from the start.
type DefaultCloudSpace struct {
	// template of the CloudSpace.
	// +optional
	// +kubebuilder:default={}
	Template CloudSpaceTemplate `json:"template,omitzero"`
}

// CloudSpaceTemplate is a CloudSpace without a name.
type CloudSpaceTemplate struct {
	// spec of the CloudSpace.
	// +optional
	// +kubebuilder:default={}
	Spec CloudSpaceSpec `json:"spec,omitzero"`
}

// TenantStatus is what the platform observed. Nothing decides by it who may do what.
type TenantStatus struct {
	// conditions: Ready summarizes; NamespaceReady, AccessConfigured, CloudSpaceReady and KubeconfigReady are the steps in
	// their order; Reconciling and Stalled are present only when True.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// phase is a one-word summary of the conditions.
	// +optional
	Phase TenantPhase `json:"phase,omitempty"`

	// observedGeneration is the generation of the spec that this status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// namespace of the tenant's objects, tenant-<id>.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`

	// namespaceUID is the UID of that namespace.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	NamespaceUID string `json:"namespaceUID,omitempty"`

	// kubeconfigSecret in namespace kubeopera-system holds the kubeconfig of the default CloudSpace.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	KubeconfigSecret string `json:"kubeconfigSecret,omitempty"`

	// cloudSpaces counts the tenant's CloudSpaces.
	// +optional
	CloudSpaces CloudSpaceCounts `json:"cloudSpaces,omitzero"`

	// quota is what the TenantQuota of the same name says of the tenant as a whole, so that one object tells it all. It is for
	// display only: nothing decides by it, and it may be a moment behind. It is empty where there is none, before the default
	// CloudSpace was looked at for the first time, and when a Tenant that is being deleted has no CloudSpace left.
	// +optional
	Quota QuotaSums `json:"quota,omitzero"`

	// retry tells of tries that went wrong, and when the next one is.
	// +optional
	Retry RetryStatus `json:"retry,omitzero"`

	// timeline lists the phases in the order they were entered, the newest last.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	Timeline []PhaseTransition `json:"timeline,omitempty"`
}

// CloudSpaceCounts counts the CloudSpaces of a tenant.
type CloudSpaceCounts struct {
	// total number of CloudSpaces.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Total int32 `json:"total"`

	// active is the number of those in phase Active.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Active int32 `json:"active"`
}

// QuotaSums are the sums of a tenant's ledger, as they are in the status of its TenantQuota.
type QuotaSums struct {
	// hard is what is enforced. A resource that is not named is not limited.
	// +optional
	Hard QuotaAmounts `json:"hard,omitempty"`

	// reserved is the sum of all reservations.
	// +optional
	Reserved QuotaAmounts `json:"reserved,omitempty"`

	// free is hard less reserved, never below zero.
	// +optional
	Free QuotaAmounts `json:"free,omitempty"`
}

// Tenant is a customer. Its name is the tenant id that tokens carry in the claim tenant_id. A Tenant owns a namespace,
// tenant-<id>, and in it a CloudSpace named default.
//
// +genclient
// +genclient:nonNamespaced
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=tnt,categories={kubeopera}
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Since",type=date,JSONPath=`.status.timeline[-1:].time`,description="time since the phase was entered"
// +kubebuilder:printcolumn:name="CloudSpaces",type=integer,JSONPath=`.status.cloudSpaces.total`
// +kubebuilder:printcolumn:name="Active",type=integer,JSONPath=`.status.cloudSpaces.active`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Name",type=string,JSONPath=`.spec.displayName`,priority=1
// +kubebuilder:printcolumn:name="Namespace",type=string,JSONPath=`.status.namespace`,priority=1
// +kubebuilder:printcolumn:name="Kubeconfig",type=string,JSONPath=`.status.kubeconfigSecret`,priority=1
// +kubebuilder:printcolumn:name="CPU-Free",type=string,JSONPath=`.status.quota.free.cpu`,priority=1
// +kubebuilder:printcolumn:name="Memory-Free",type=string,JSONPath=`.status.quota.free.memory`,priority=1
// +kubebuilder:printcolumn:name="Attempts",type=integer,JSONPath=`.status.retry.attempts`,priority=1
// +kubebuilder:printcolumn:name="Next-Retry",type=string,format=date-time,JSONPath=`.status.retry.nextRetryTime`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 24",message="a tenant id can have at most 24 characters"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z]([a-z0-9]|-[a-z0-9])*$')",message="a tenant id must start with a letter, consist of lower case letters, digits and single dashes, and not end with a dash"
type Tenant struct {
	metav1.TypeMeta `json:",inline"`

	// metadata of the object; the name is the tenant id.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is what an administrator sets for the customer.
	// +optional
	// +kubebuilder:default={}
	Spec TenantSpec `json:"spec,omitzero"`

	// status is what the platform observed. Until it did, observedGeneration is -1: without it, kstatus would take an object that
	// nobody has looked at for one that is ready.
	// +optional
	// +kubebuilder:default={"observedGeneration":-1}
	Status TenantStatus `json:"status,omitzero"`
}

// TenantList is a list of Tenants.
//
// +kubebuilder:object:root=true
type TenantList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`
	Items           []Tenant `json:"items"`
}
