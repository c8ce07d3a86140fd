// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// CloudSpaceDefaultName is the name of the CloudSpace that every Tenant owns from the start. Its host name is the tenant
// id alone.
const CloudSpaceDefaultName = "default"

// CloudSpacePhase is a one-word summary of a CloudSpace's conditions.
// +kubebuilder:validation:Enum=Pending;Provisioning;InstallingFlux;Active;Failed;Suspended;Deleting
type CloudSpacePhase string

// The phases of a CloudSpace. The first Active is kept: a later outage is the condition Ready False with reason Degraded.
const (
	// CloudSpacePending means that nothing was created yet: quota, or the Tenant, is waited for.
	CloudSpacePending CloudSpacePhase = "Pending"
	// CloudSpaceProvisioning means that the namespace, its policies or the control plane are being made.
	CloudSpaceProvisioning CloudSpacePhase = "Provisioning"
	// CloudSpaceInstallingFlux means that the control plane answers and Flux is being installed in it.
	CloudSpaceInstallingFlux CloudSpacePhase = "InstallingFlux"
	// CloudSpaceActive means that the CloudSpace was ready for use once.
	CloudSpaceActive CloudSpacePhase = "Active"
	// CloudSpaceFailed means that a step cannot succeed, or has not within its deadline. Condition Stalled is True.
	CloudSpaceFailed CloudSpacePhase = "Failed"
	// CloudSpaceSuspended means that control plane and workloads are scaled to zero on request.
	CloudSpaceSuspended CloudSpacePhase = "Suspended"
	// CloudSpaceDeleting means that the CloudSpace is being taken down.
	CloudSpaceDeleting CloudSpacePhase = "Deleting"
)

// ControlPlaneSize names one of the sizes that the PlatformConfig gives meaning to.
// +kubebuilder:validation:Enum=Small;Medium;Large
type ControlPlaneSize string

// The control-plane sizes. What each gives in CPU and memory is set by the operator of the platform.
const (
	ControlPlaneSmall  ControlPlaneSize = "Small"
	ControlPlaneMedium ControlPlaneSize = "Medium"
	ControlPlaneLarge  ControlPlaneSize = "Large"
)

// EndpointType says from where a CloudSpace's API server can be reached.
// +kubebuilder:validation:Enum=InCluster;LoadBalancer;Hostname
type EndpointType string

// The endpoint types. Which of the last two are there to ask for is set by the operator of the platform.
const (
	// EndpointInCluster means the CloudSpace's Service within the host cluster alone.
	EndpointInCluster EndpointType = "InCluster"
	// EndpointLoadBalancer means an address of its own, given by the host cluster's cloud.
	EndpointLoadBalancer EndpointType = "LoadBalancer"
	// EndpointHostname means a DNS name, whose TLS connections the host cluster's ingress or gateway passes through.
	EndpointHostname EndpointType = "Hostname"
)

// CloudSpaceSpec is what a tenant asks for. Every field has a default: an empty spec is a small, useful CloudSpace.
//
// +kubebuilder:validation:XValidation:rule="!has(self.controlPlane) || !has(self.controlPlane.etcd) || !has(self.controlPlane.etcd.storage) || !has(self.resources) || !has(self.resources.storage) || !string(self.controlPlane.etcd.storage).matches('^[^-]{1,24}$') || !string(self.resources.storage).matches('^[^-]{1,24}$') || quantity(string(self.controlPlane.etcd.storage)).compareTo(quantity(string(self.resources.storage))) <= 0",message="controlPlane.etcd.storage is part of resources.storage and cannot be larger"
// +kubebuilder:validation:XValidation:rule="!has(self.controlPlane) || !has(self.controlPlane.highAvailability) || !self.controlPlane.highAvailability || !has(self.controlPlane.etcd) || !has(self.controlPlane.etcd.storage) || !has(self.resources) || !has(self.resources.storage) || !string(self.controlPlane.etcd.storage).matches('^[^-]{1,24}$') || !string(self.resources.storage).matches('^[^-]{1,24}$') || quantity(string(self.controlPlane.etcd.storage)).add(quantity(string(self.controlPlane.etcd.storage))).add(quantity(string(self.controlPlane.etcd.storage))).compareTo(quantity(string(self.resources.storage))) <= 0",message="with controlPlane.highAvailability etcd has three volumes: three times controlPlane.etcd.storage must be within resources.storage"
// +kubebuilder:validation:XValidation:rule="!has(self.controlPlane) || !has(self.controlPlane.highAvailability) || !self.controlPlane.highAvailability || !has(self.resources) || !has(self.resources.pods) || self.resources.pods >= 11",message="with controlPlane.highAvailability resources.pods must be at least 11"
type CloudSpaceSpec struct {
	// displayName is shown to people in place of the name.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[^\\\\p{Cc}\\\\p{Zl}\\\\p{Zp}\\\\x{202A}-\\\\x{202E}\\\\x{2066}-\\\\x{2069}]*$')",message="displayName cannot contain control characters, line breaks, or characters that change the direction of text"
	DisplayName string `json:"displayName,omitempty"`

	// resources is all that the CloudSpace may request from the host cluster, its own control plane included.
	// +optional
	// +kubebuilder:default={}
	Resources CloudSpaceResources `json:"resources,omitzero"`

	// kubernetesVersion of the CloudSpace's own API server, for example v1.36.0. Must be one that the platform offers;
	// left out, the platform's default is used.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:XValidation:rule="self.matches('^v1[.](0|[1-9][0-9]*)[.](0|[1-9][0-9]*)$')",message="kubernetesVersion must look like v1.36.0"
	KubernetesVersion string `json:"kubernetesVersion,omitempty"`

	// controlPlane shapes the CloudSpace's own API server, controllers, scheduler and etcd.
	// +optional
	// +kubebuilder:default={}
	ControlPlane ControlPlane `json:"controlPlane,omitzero"`

	// endpoint says from where the CloudSpace's API server can be reached. It cannot be changed after creation.
	// +optional
	// +kubebuilder:default={}
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="endpoint cannot be changed after creation"
	Endpoint Endpoint `json:"endpoint,omitzero"`

	// suspend takes control plane and workloads down to nothing, until it is false again. What the CloudSpace was granted stays its own, and so
	// do its data, volumes, Services, names and kubeconfig. Pods that belong to no Deployment, StatefulSet or the like do not come back.
	// +optional
	Suspend bool `json:"suspend,omitempty"`

	// deletionProtection refuses the deletion of the CloudSpace until it is false again.
	// +optional
	DeletionProtection bool `json:"deletionProtection,omitempty"`
}

// CloudSpaceResources caps what a CloudSpace may request from the host cluster, its own control plane included. Amounts have at most 24
// characters and no minus: the API server reads "1e-1000000000" for hours.
type CloudSpaceResources struct {
	// cpu is the sum of CPU requests, in cores: at least 100m, at most 100k.
	// +optional
	// +kubebuilder:default="2"
	// +kubebuilder:validation:XValidation:rule="string(self).matches('^[^-]{1,24}$') && quantity(string(self)).compareTo(quantity('100m')) >= 0 && quantity(string(self)).compareTo(quantity('100k')) <= 0",message="cpu must be between 100m and 100k cores"
	CPU resource.Quantity `json:"cpu,omitzero"`

	// memory is the sum of memory requests, in bytes: at least 64Mi, at most 1Pi.
	// +optional
	// +kubebuilder:default="4Gi"
	// +kubebuilder:validation:XValidation:rule="string(self).matches('^[^-]{1,24}$') && quantity(string(self)).compareTo(quantity('64Mi')) >= 0 && quantity(string(self)).compareTo(quantity('1Pi')) <= 0",message="memory must be between 64Mi and 1Pi"
	Memory resource.Quantity `json:"memory,omitzero"`

	// storage is the sum of volume requests, in bytes, the volume of the CloudSpace's etcd included: at most 1Pi.
	// +optional
	// +kubebuilder:default="10Gi"
	// +kubebuilder:validation:XValidation:rule="string(self).matches('^[^-]{1,24}$') && quantity(string(self)).compareTo(quantity('64Mi')) >= 0 && quantity(string(self)).compareTo(quantity('1Pi')) <= 0",message="storage must be between 64Mi and 1Pi"
	Storage resource.Quantity `json:"storage,omitzero"`

	// pods is the highest number of pods at a time, those of the control plane included.
	// +optional
	// +kubebuilder:default=50
	// +kubebuilder:validation:Minimum=8
	// +kubebuilder:validation:Maximum=10000
	Pods int32 `json:"pods,omitempty"`
}

// ControlPlane shapes the CloudSpace's own API server, controllers, scheduler and etcd.
type ControlPlane struct {
	// size chooses CPU and memory of the control plane: Small, Medium or Large.
	// +optional
	// +kubebuilder:default=Small
	Size ControlPlaneSize `json:"size,omitempty"`

	// highAvailability runs two control planes and three members of etcd, over several nodes where there are some: one of each
	// can be lost without an outage. It cannot be changed after creation.
	// +optional
	// +kubebuilder:default=false
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="controlPlane.highAvailability cannot be changed after creation"
	HighAvailability bool `json:"highAvailability,omitempty"`

	// etcd is the CloudSpace's own data store. It cannot be changed after creation.
	// +optional
	// +kubebuilder:default={}
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="controlPlane.etcd cannot be changed after creation"
	Etcd Etcd `json:"etcd,omitzero"`
}

// Etcd is the volume of the CloudSpace's own data store.
type Etcd struct {
	// storage is the size of each etcd member's volume, in bytes: at least 64Mi, at most 64Gi.
	// +optional
	// +kubebuilder:default="2Gi"
	// +kubebuilder:validation:XValidation:rule="string(self).matches('^[^-]{1,24}$') && quantity(string(self)).compareTo(quantity('64Mi')) >= 0 && quantity(string(self)).compareTo(quantity('64Gi')) <= 0",message="etcd storage must be between 64Mi and 64Gi"
	Storage resource.Quantity `json:"storage,omitzero"`

	// storageClassName of the etcd volume; empty means the host cluster's default StorageClass.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self == \"\" || !format.dns1123Subdomain().validate(self).hasValue()",message="storageClassName must be the name of a StorageClass: lower case letters, digits, dashes and dots"
	StorageClassName string `json:"storageClassName,omitempty"`
}

// Endpoint says from where a CloudSpace's API server can be reached. Within the host cluster it always can.
//
// +kubebuilder:validation:XValidation:rule="!has(self.type) || self.type != 'Hostname' || (has(self.hostname) && self.hostname.size() > 0)",message="endpoint.type Hostname needs endpoint.hostname"
// +kubebuilder:validation:XValidation:rule="(has(self.type) && self.type == 'Hostname') || !has(self.hostname) || self.hostname.size() == 0",message="endpoint.hostname is only for endpoint.type Hostname"
type Endpoint struct {
	// type is InCluster (the CloudSpace's Service within the host cluster), LoadBalancer (an address of its own) or Hostname (a
	// DNS name). The platform may not offer the last two.
	// +optional
	// +kubebuilder:default=InCluster
	Type EndpointType `json:"type,omitempty"`

	// hostname is the DNS name with type Hostname, in lower case: one label below a domain that the platform offers. The first
	// CloudSpace that asks for a name has it.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self == \"\" || (!format.dns1123Subdomain().validate(self).hasValue() && self.split('.').all(label, label.size() <= 63) && !isIP(self))",message="endpoint.hostname must be a DNS name: lower case letters, digits, dashes and dots, without a wildcard"
	Hostname string `json:"hostname,omitempty"`
}

// CloudSpaceStatus is what the platform observed. Nothing decides by it who may do what.
type CloudSpaceStatus struct {
	// conditions: Ready summarizes; QuotaReserved, NamespaceReady, PoliciesApplied, ControlPlaneReady, KubeconfigReady,
	// FluxReady, UpToDate and AdvisorReady are the steps in their order; Reconciling and Stalled are present only when True.
	// UpToDate is False while the control plane works on, and is not yet, or cannot be, what was asked for last.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// phase is a one-word summary of the conditions.
	// +optional
	Phase CloudSpacePhase `json:"phase,omitempty"`

	// observedGeneration is the generation of the spec that this status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// hostName is the CloudSpace's name on the host cluster: the tenant id for the default one, <id>--<name> for others.
	// +optional
	// +kubebuilder:validation:MaxLength=46
	HostName string `json:"hostName,omitempty"`

	// hostNamespace is the namespace of the host cluster that holds the control plane and the workloads.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	HostNamespace string `json:"hostNamespace,omitempty"`

	// endpoint is the URL of the CloudSpace's API server.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Endpoint string `json:"endpoint,omitempty"`

	// versions in use.
	// +optional
	Versions CloudSpaceVersions `json:"versions,omitzero"`

	// kubeconfig tells where the administrator's kubeconfig of the CloudSpace is kept.
	// +optional
	Kubeconfig KubeconfigStatus `json:"kubeconfig,omitzero"`

	// resources is what is used of spec.resources, as Kubernetes counts it. It is brought up to date every 30 seconds at most.
	// +optional
	Resources CloudSpaceUsage `json:"resources,omitzero"`

	// resourcesTime is when resources changed last.
	// +optional
	ResourcesTime *metav1.Time `json:"resourcesTime,omitempty"`

	// retry tells of tries that went wrong, and when the next one is.
	// +optional
	Retry RetryStatus `json:"retry,omitzero"`

	// drift tells altered parts of the control plane from those that are as its chart says.
	// +optional
	Drift DriftStatus `json:"drift,omitzero"`

	// timeline lists the phases in the order they were entered, the newest last.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	Timeline []PhaseTransition `json:"timeline,omitempty"`

	// deletion lists the steps of taking the CloudSpace down and whether each is done.
	// +optional
	// +listType=map
	// +listMapKey=step
	// +kubebuilder:validation:MaxItems=16
	Deletion []DeletionStep `json:"deletion,omitempty"`
}

// CloudSpaceVersions are the versions that run.
type CloudSpaceVersions struct {
	// kubernetes version of the CloudSpace's API server.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Kubernetes string `json:"kubernetes,omitempty"`

	// vcluster version that serves it.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	VCluster string `json:"vcluster,omitempty"`

	// flux is the version of the Flux chart inside.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Flux string `json:"flux,omitempty"`
}

// KubeconfigWarning says how soon a kubeconfig expires.
// +kubebuilder:validation:Enum=ExpiresIn30Days;ExpiresIn7Days;Expired
type KubeconfigWarning string

// The warnings before, and after, a kubeconfig expires.
const (
	KubeconfigExpiresIn30Days KubeconfigWarning = "ExpiresIn30Days"
	KubeconfigExpiresIn7Days  KubeconfigWarning = "ExpiresIn7Days"
	KubeconfigExpired         KubeconfigWarning = "Expired"
)

// KubeconfigStatus tells where a kubeconfig is kept and until when it works.
type KubeconfigStatus struct {
	// secret in namespace kubeopera-system, with the kubeconfig under the keys config and value.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Secret string `json:"secret,omitempty"`

	// expires is the end of the client certificate's validity.
	// +optional
	Expires *metav1.Time `json:"expires,omitempty"`

	// warning tells that the kubeconfig expires and was not renewed, as it should be 90 days before: ExpiresIn30Days, ExpiresIn7Days
	// or Expired.
	// +optional
	Warning KubeconfigWarning `json:"warning,omitempty"`
}

// DriftStatus is how the parts of a control plane stood when Flux last compared them with the chart. Parts that differ from it were
// altered since.
type DriftStatus struct {
	// look names that time.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Look string `json:"look,omitempty"`

	// parts is a digest of the parts' identities and versions.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Parts string `json:"parts,omitempty"`
}

// DeletionStep is one step of taking a CloudSpace down.
type DeletionStep struct {
	// step by its name.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Step string `json:"step"`

	// done is true when nothing is left of what the step takes down.
	// +required
	Done bool `json:"done"`

	// message says what is waited for.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
}

// CloudSpace is an isolated Kubernetes control plane of one tenant: its own API server, etcd and scheduler, with workloads
// on the shared worker nodes of the host cluster. It lives in the tenant's namespace, tenant-<id>.
//
// +genclient
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,shortName=csp,categories={kubeopera}
// +kubebuilder:selectablefield:JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Since",type=date,JSONPath=`.status.timeline[-1:].time`,description="time since the phase was entered"
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.status.versions.kubernetes`
// +kubebuilder:printcolumn:name="CPU",type=string,JSONPath=`.spec.resources.cpu`
// +kubebuilder:printcolumn:name="Memory",type=string,JSONPath=`.spec.resources.memory`
// +kubebuilder:printcolumn:name="CPU-Free",type=string,JSONPath=`.status.resources.cpu.free`
// +kubebuilder:printcolumn:name="Memory-Free",type=string,JSONPath=`.status.resources.memory.free`
// +kubebuilder:printcolumn:name="Kubeconfig-Expires",type=string,format=date-time,JSONPath=`.status.kubeconfig.expires`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Storage",type=string,JSONPath=`.spec.resources.storage`,priority=1
// +kubebuilder:printcolumn:name="Size",type=string,JSONPath=`.spec.controlPlane.size`,priority=1
// +kubebuilder:printcolumn:name="VCluster",type=string,JSONPath=`.status.versions.vcluster`,priority=1
// +kubebuilder:printcolumn:name="Up-To-Date",type=string,JSONPath=`.status.conditions[?(@.type=="UpToDate")].reason`,priority=1
// +kubebuilder:printcolumn:name="Flux",type=string,JSONPath=`.status.versions.flux`,priority=1
// +kubebuilder:printcolumn:name="Host-Namespace",type=string,JSONPath=`.status.hostNamespace`,priority=1
// +kubebuilder:printcolumn:name="Endpoint",type=string,JSONPath=`.status.endpoint`,priority=1
// +kubebuilder:printcolumn:name="Attempts",type=integer,JSONPath=`.status.retry.attempts`,priority=1
// +kubebuilder:printcolumn:name="Next-Retry",type=string,format=date-time,JSONPath=`.status.retry.nextRetryTime`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 20",message="the name of a CloudSpace can have at most 20 characters"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z]([a-z0-9]|-[a-z0-9])*$')",message="the name of a CloudSpace must start with a letter, consist of lower case letters, digits and single dashes, and not end with a dash"
type CloudSpace struct {
	metav1.TypeMeta `json:",inline"`

	// metadata of the object; the name is unique within the tenant.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is what the tenant asks for.
	// +optional
	// +kubebuilder:default={}
	Spec CloudSpaceSpec `json:"spec,omitzero"`

	// status is what the platform observed. Until it did, observedGeneration is -1: without it, kstatus would take an object that
	// nobody has looked at for one that is ready.
	// +optional
	// +kubebuilder:default={"observedGeneration":-1}
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
