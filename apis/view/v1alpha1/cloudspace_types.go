// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tenancyv1alpha1 "github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
)

// State is a CloudSpace's or an account's phase in the words of dashboards.
// +kubebuilder:validation:Enum=provisioning;active;failed;suspended;deleting
type State string

// The states.
const (
	// StateProvisioning means that it is being made, or waits for its turn to be.
	StateProvisioning State = "provisioning"
	// StateActive means that it was ready for use once. Condition Ready tells whether it is now.
	StateActive State = "active"
	// StateFailed means that it cannot be made, or was not in time. It is tried again; message says what to do.
	StateFailed State = "failed"
	// StateSuspended means that nothing of it runs, as its spec asks.
	StateSuspended State = "suspended"
	// StateDeleting means that it is being taken down.
	StateDeleting State = "deleting"
)

// Kubeconfig tells until when the administrator's kubeconfig of a CloudSpace works.
type Kubeconfig struct {
	// expires is the end of the client certificate's validity. It is renewed long before.
	// +optional
	Expires *metav1.Time `json:"expires,omitempty"`

	// warning tells that the kubeconfig expires and was not renewed, as it should be 90 days before.
	// +optional
	Warning tenancyv1alpha1.KubeconfigWarning `json:"warning,omitempty"`
}

// Retry tells of tries that went wrong, and when the next one is.
type Retry struct {
	// attempts that went wrong since the step that fails was last proven, or since a retry was asked for.
	// +optional
	Attempts int32 `json:"attempts,omitempty"`

	// nextRetryTime is when it is tried again by itself.
	// +optional
	NextRetryTime *metav1.Time `json:"nextRetryTime,omitempty"`

	// lastHandledRequest is the value of the annotation tenancy.kubeopera.io/retry-requested that was handled last.
	// +optional
	LastHandledRequest string `json:"lastHandledRequest,omitempty"`
}

// StateTransition records when an object entered a state.
type StateTransition struct {
	// state that was entered.
	// +required
	State State `json:"state"`

	// time the state was entered.
	// +required
	Time metav1.Time `json:"time"`
}

// CloudSpaceStatus is what the platform observed, in words for the tenant. It names nothing of the host cluster.
type CloudSpaceStatus struct {
	// state in one word: provisioning, active, failed, suspended or deleting.
	// +optional
	State State `json:"state,omitempty"`

	// message says why it is not ready, and what can be done about it. Empty when it is.
	// +optional
	Message string `json:"message,omitempty"`

	// conditions: Ready summarizes; the others are the steps in their order. Reconciling and Stalled are present only when True.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// observedGeneration is the generation of the spec that this status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// endpoint is the URL of the CloudSpace's API server.
	// +optional
	Endpoint string `json:"endpoint,omitempty"`

	// versions in use.
	// +optional
	Versions tenancyv1alpha1.CloudSpaceVersions `json:"versions,omitzero"`

	// kubeconfig tells until when the administrator's kubeconfig works.
	// +optional
	Kubeconfig Kubeconfig `json:"kubeconfig,omitzero"`

	// resources is what is used of spec.resources, as Kubernetes counts it. It is brought up to date every 30 seconds at most.
	// +optional
	Resources tenancyv1alpha1.CloudSpaceUsage `json:"resources,omitzero"`

	// retry tells of tries that went wrong, and when the next one is.
	// +optional
	Retry Retry `json:"retry,omitzero"`

	// timeline lists the states in the order they were entered, the newest last.
	// +optional
	// +listType=atomic
	Timeline []StateTransition `json:"timeline,omitempty"`
}

// CloudSpace is an isolated Kubernetes cluster of your own: its API server, its etcd and its scheduler, with workloads on shared nodes.
// Each one belongs to one tenant, and lives in the tenant's namespace, tenant-<id>.
//
// +genclient
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,shortName=csp
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="Since",type=date,JSONPath=`.status.timeline[-1:].time`,description="time since the state was entered"
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.status.versions.kubernetes`
// +kubebuilder:printcolumn:name="CPU",type=string,JSONPath=`.spec.resources.cpu`
// +kubebuilder:printcolumn:name="CPU-Free",type=string,JSONPath=`.status.resources.cpu.free`
// +kubebuilder:printcolumn:name="Memory",type=string,JSONPath=`.spec.resources.memory`
// +kubebuilder:printcolumn:name="Memory-Free",type=string,JSONPath=`.status.resources.memory.free`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.message`
// +kubebuilder:printcolumn:name="Display-Name",type=string,JSONPath=`.spec.displayName`,priority=1
// +kubebuilder:printcolumn:name="Endpoint",type=string,JSONPath=`.status.endpoint`,priority=1
// +kubebuilder:printcolumn:name="Kubeconfig-Expires",type=string,format=date-time,JSONPath=`.status.kubeconfig.expires`,priority=1
// +kubebuilder:printcolumn:name="Storage",type=string,JSONPath=`.spec.resources.storage`,priority=1
// +kubebuilder:printcolumn:name="Flux",type=string,JSONPath=`.status.versions.flux`,priority=1
// +kubebuilder:printcolumn:name="Next-Retry",type=string,format=date-time,JSONPath=`.status.retry.nextRetryTime`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type CloudSpace struct {
	metav1.TypeMeta `json:",inline"`

	// metadata of the object; the name is unique within the tenant, and has at most 20 lower case letters, digits and single dashes.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is what you ask for.
	// +optional
	Spec tenancyv1alpha1.CloudSpaceSpec `json:"spec,omitzero"`

	// status is what the platform observed. It cannot be written.
	// +optional
	Status CloudSpaceStatus `json:"status,omitzero"`
}

// CloudSpaceList is a list of CloudSpaces.
//
// +kubebuilder:object:root=true
type CloudSpaceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`
	Items           []CloudSpace `json:"items"`
}
