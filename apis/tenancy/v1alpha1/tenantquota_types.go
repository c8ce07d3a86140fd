// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// QuotaResource is something a TenantQuota counts.
type QuotaResource string

// The resources a TenantQuota counts.
const (
	QuotaCloudSpaces QuotaResource = "cloudspaces"
	QuotaCPU         QuotaResource = "cpu"
	QuotaMemory      QuotaResource = "memory"
	QuotaStorage     QuotaResource = "storage"
	QuotaPods        QuotaResource = "pods"
)

// QuotaAmounts are exact amounts by resource: cloudspaces and pods are counts, cpu is in cores, memory and storage are in
// bytes. A resource that is not named is not limited.
//
// +kubebuilder:validation:MaxProperties=5
type QuotaAmounts map[QuotaResource]resource.Quantity

// TenantQuotaSpec is what an administrator allows a tenant.
type TenantQuotaSpec struct {
	// hard is the sum of what all CloudSpaces of the tenant may ask for.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.all(k, k in ['cloudspaces', 'cpu', 'memory', 'storage', 'pods'])",message="hard knows cloudspaces, cpu, memory, storage and pods"
	// +kubebuilder:validation:XValidation:rule="self.all(k, string(self[k]).matches('^[^-]{1,24}$'))",message="amounts have at most 24 characters, and neither they nor their exponents can be negative"
	// +kubebuilder:validation:XValidation:rule="self.all(k, !string(self[k]).matches('^[^-]{1,24}$') || quantity(string(self[k])).compareTo(quantity('1Ei')) <= 0)",message="amounts can be at most 1Ei"
	// +kubebuilder:validation:XValidation:rule="!('cloudspaces' in self) || !string(self['cloudspaces']).matches('^[^-]{1,24}$') || quantity(string(self['cloudspaces'])).compareTo(quantity('500')) <= 0",message="cloudspaces can be at most 500"
	// +kubebuilder:validation:XValidation:rule="!('cpu' in self) || !string(self['cpu']).matches('^[^-]{1,24}$') || quantity(string(self['cpu'])).compareTo(quantity('0')) == 0 || quantity(string(self['cpu'])).compareTo(quantity('1m')) >= 0",message="amounts are zero, or at least 1m of cpu and 1 of anything else"
	// +kubebuilder:validation:XValidation:rule="['memory', 'storage'].all(k, !(k in self) || !string(self[k]).matches('^[^-]{1,24}$') || quantity(string(self[k])).compareTo(quantity('0')) == 0 || quantity(string(self[k])).compareTo(quantity('1')) >= 0)",message="amounts are zero, or at least 1m of cpu and 1 of anything else"
	// +kubebuilder:validation:XValidation:rule="['cloudspaces', 'pods'].all(k, !(k in self) || !string(self[k]).matches('^[^-]{1,24}$') || quantity(string(self[k])).isInteger())",message="cloudspaces and pods are whole numbers"
	Hard QuotaAmounts `json:"hard,omitempty"`
}

// TenantQuotaStatus is the ledger of a tenant.
type TenantQuotaStatus struct {
	// conditions of the quota.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// observedGeneration is the generation of the spec that this status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// hard is what is enforced.
	// +optional
	Hard QuotaAmounts `json:"hard,omitempty"`

	// reserved is the sum of all reservations.
	// +optional
	Reserved QuotaAmounts `json:"reserved,omitempty"`

	// free is hard less reserved.
	// +optional
	Free QuotaAmounts `json:"free,omitempty"`

	// usage says reserved/hard for each resource, for people.
	// +optional
	// +kubebuilder:validation:MaxProperties=5
	Usage map[QuotaResource]string `json:"usage,omitempty"`

	// reservations by CloudSpace.
	// +optional
	// +listType=map
	// +listMapKey=cloudSpace
	// +kubebuilder:validation:MaxItems=1000
	Reservations []QuotaReservation `json:"reservations,omitempty"`

	// waiting lists the first CloudSpaces that wait for room, and then those that ask for more than the quota has in all.
	// +optional
	// +listType=map
	// +listMapKey=cloudSpace
	// +kubebuilder:validation:MaxItems=20
	Waiting []QuotaWaiting `json:"waiting,omitempty"`

	// waitingCount is the number of all CloudSpaces that wait for room.
	// +optional
	// +kubebuilder:validation:Minimum=0
	WaitingCount int32 `json:"waitingCount,omitempty"`
}

// QuotaReservation is what one CloudSpace holds of a tenant's quota.
type QuotaReservation struct {
	// cloudSpace by its name.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=20
	CloudSpace string `json:"cloudSpace"`

	// uid of the CloudSpace.
	// +required
	// +kubebuilder:validation:MaxLength=64
	UID string `json:"uid"`

	// generation of the CloudSpace whose spec was counted last. A later spec takes up nothing more before it is counted too.
	// +optional
	Generation int64 `json:"generation,omitempty"`

	// since is when it was granted.
	// +required
	Since metav1.Time `json:"since"`

	// amounts that are held.
	// +optional
	Amounts QuotaAmounts `json:"amounts,omitempty"`
}

// QuotaWaiting is a CloudSpace that waits for room.
type QuotaWaiting struct {
	// cloudSpace by its name.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=20
	CloudSpace string `json:"cloudSpace"`

	// uid of the CloudSpace.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	UID string `json:"uid,omitempty"`

	// missing is what lacks for a grant. With nothing in it, something is left of an earlier CloudSpace of the same name.
	// +optional
	Missing QuotaAmounts `json:"missing,omitempty"`

	// asked is all that it asks for. One that then asks for more of anything begins to wait anew.
	// +optional
	Asked QuotaAmounts `json:"asked,omitempty"`

	// since is when it began to wait.
	// +required
	Since metav1.Time `json:"since"`
}

// TenantQuota is what a tenant may use. It has the same name as its Tenant.
//
// +genclient
// +genclient:nonNamespaced
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=tq,categories={kubeopera}
// +kubebuilder:printcolumn:name="CloudSpaces",type=string,JSONPath=`.status.usage.cloudspaces`
// +kubebuilder:printcolumn:name="CPU",type=string,JSONPath=`.status.usage.cpu`
// +kubebuilder:printcolumn:name="Memory",type=string,JSONPath=`.status.usage.memory`
// +kubebuilder:printcolumn:name="Storage",type=string,JSONPath=`.status.usage.storage`
// +kubebuilder:printcolumn:name="Pods",type=string,JSONPath=`.status.usage.pods`
// +kubebuilder:printcolumn:name="Waiting",type=integer,JSONPath=`.status.waitingCount`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 24",message="a tenant id can have at most 24 characters"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z]([a-z0-9]|-[a-z0-9])*$')",message="a tenant id must start with a letter, consist of lower case letters, digits and single dashes, and not end with a dash"
type TenantQuota struct {
	metav1.TypeMeta `json:",inline"`

	// metadata of the object; the name is the tenant id.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is what an administrator allows.
	// +optional
	// +kubebuilder:default={}
	Spec TenantQuotaSpec `json:"spec,omitzero"`

	// status is the ledger.
	// +optional
	// +kubebuilder:default={"observedGeneration":-1}
	Status TenantQuotaStatus `json:"status,omitzero"`
}

// TenantQuotaList is a list of TenantQuotas.
//
// +kubebuilder:object:root=true
type TenantQuotaList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`
	Items           []TenantQuota `json:"items"`
}
