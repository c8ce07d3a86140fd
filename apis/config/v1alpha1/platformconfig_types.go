// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	tenancyv1alpha1 "github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
)

// SchemeGroupVersion is the group and version of PlatformConfig.
var SchemeGroupVersion = schema.GroupVersion{Group: "config.kubeopera.io", Version: "v1alpha1"}

// AddToScheme adds PlatformConfig to a scheme.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(SchemeGroupVersion, &PlatformConfig{})
	return nil
}

// PlatformConfig configures tenant-controller. It is read once, at the start: an unknown field or a value that makes no
// sense stops the start and is named.
//
// +kubebuilder:object:root=true
type PlatformConfig struct {
	metav1.TypeMeta `json:",inline"`

	// charts that are installed for each CloudSpace and where they come from.
	Charts Charts `json:"charts"`

	// images tells where container images come from.
	Images Images `json:"images,omitzero"`

	// host describes the host cluster.
	Host Host `json:"host"`

	// kubernetes lists the Kubernetes versions that a CloudSpace may have. The first one is the default.
	Kubernetes []KubernetesVersion `json:"kubernetes"`

	// sizes gives the control-plane sizes their meaning, by name: Small, Medium, Large. A size that is left out is refused
	// when a CloudSpace asks for it. Small must be there: it is the default.
	Sizes map[string]Size `json:"sizes"`

	// endpoint says how CloudSpaces can be reached from outside the host cluster. What is left out is not offered, and refused
	// when a CloudSpace asks for it.
	Endpoint Endpoint `json:"endpoint,omitzero"`

	// network says what the pods of CloudSpaces can reach.
	Network Network `json:"network,omitzero"`

	// limitFactors cap the sum of limits of a CloudSpace at its requests times a factor.
	LimitFactors LimitFactors `json:"limitFactors,omitzero"`

	// podEphemeralStorage is the most that a pod of a CloudSpace may use of a node's disk: logs, what containers write, and emptyDir
	// volumes. At least 1Gi. A control plane whose size allows it more has more. Default 4Gi.
	PodEphemeralStorage resource.Quantity `json:"podEphemeralStorage,omitzero"`

	// tenantQuota is for Tenants for which no administrator made a TenantQuota.
	TenantQuota TenantQuota `json:"tenantQuota,omitzero"`

	// deadlines after which a step that is not done counts as failed. It is tried on all the same.
	Deadlines Deadlines `json:"deadlines,omitzero"`

	// backoff between tries after errors.
	Backoff Backoff `json:"backoff,omitzero"`

	// rollout bounds how many control planes are changed at a time.
	Rollout Rollout `json:"rollout,omitzero"`

	// helm is how Flux installs the releases of a CloudSpace.
	Helm Helm `json:"helm,omitzero"`
}

// Charts are the Helm charts that make up a CloudSpace.
type Charts struct {
	// vcluster is the vCluster chart. Its version is also the version of vCluster's image.
	VCluster Chart `json:"vcluster"`

	// flux is the chart of Flux inside a CloudSpace, cloudspace-flux.
	Flux Chart `json:"flux"`

	// advisor is the App Advisor chart; left out, no App Advisor is installed.
	Advisor *Chart `json:"advisor,omitempty"`
}

// Chart is a Helm chart in a repository.
type Chart struct {
	// repository URL: oci://host/path or https://host/path (http:// for tests). The chart's name is not part of it.
	Repository string `json:"repository"`

	// name of the chart.
	Name string `json:"name"`

	// version of the chart, exact.
	Version string `json:"version"`

	// secretName is that of a Secret in kubeopera-system with the repository's credentials: username and password, or, for an
	// oci:// repository, of type kubernetes.io/dockerconfigjson. Empty means none.
	SecretName string `json:"secretName,omitempty"`

	// certSecretName is that of a Secret in kubeopera-system with the certificate authority of the repository, ca.crt, and,
	// where it asks for one, the client's certificate, tls.crt and tls.key. Empty means the authorities that Flux knows.
	CertSecretName string `json:"certSecretName,omitempty"`

	// insecure allows an oci:// repository without TLS. For tests.
	Insecure bool `json:"insecure,omitempty"`

	// values are added to, and win over, the values that the operator sets. Not for the vCluster chart.
	Values *runtime.RawExtension `json:"values,omitempty"`
}

// Images tells where container images come from.
type Images struct {
	// registry replaces the registry of every image of a CloudSpace, with the same paths below it, as a mirror has them;
	// empty leaves each image where it is published.
	Registry string `json:"registry,omitempty"`

	// pullSecrets are names of Secrets of type kubernetes.io/dockerconfigjson in kubeopera-system. Each host namespace gets copies,
	// which follow a change within a minute, and control planes pull their images with them. At most 8.
	PullSecrets []string `json:"pullSecrets,omitempty"`

	// workloadsUsePullSecrets lets all pods of a CloudSpace pull with the pull secrets: CoreDNS and Flux, which need them when the
	// registry serves nobody else, but the tenant's own pods too, which may then run every image that the secrets open.
	WorkloadsUsePullSecrets bool `json:"workloadsUsePullSecrets,omitempty"`
}

// Host describes the host cluster.
type Host struct {
	// serviceCIDR is the service range of the host cluster. A vCluster must know it and would otherwise find it by making
	// Services that cannot exist.
	ServiceCIDR string `json:"serviceCIDR"`
}

// KubernetesVersion is a Kubernetes version with the releases of etcd and CoreDNS that go with it.
type KubernetesVersion struct {
	// version such as v1.36.0.
	Version string `json:"version"`

	// etcd is the image tag of etcd, such as 3.6.8-0.
	Etcd string `json:"etcd"`

	// coreDNS is the image tag of CoreDNS, such as 1.14.2.
	CoreDNS string `json:"coreDNS"`
}

// Size gives requests and limits of each part of a control plane.
type Size struct {
	// controlPlane is the pod with API server, controllers, scheduler and syncer.
	ControlPlane corev1.ResourceRequirements `json:"controlPlane"`

	// etcd is one member of the data store.
	Etcd corev1.ResourceRequirements `json:"etcd"`

	// coreDNS is the DNS of the CloudSpace; it runs among its workloads.
	CoreDNS corev1.ResourceRequirements `json:"coreDNS"`
}

// LimitFactors cap the sum of limits at the sum of requests times a factor.
type LimitFactors struct {
	// cpu factor, 1 to 100. Default 3.
	CPU int64 `json:"cpu,omitempty"`

	// memory factor, 1 to 100. Default 2.
	Memory int64 `json:"memory,omitempty"`
}

// TenantQuota is what a tenant may use, all CloudSpaces together.
type TenantQuota struct {
	// hard, as in spec.hard of a TenantQuota: cloudspaces (at most 500), cpu, memory, storage, pods. What is left out is not limited. Default
	// {cloudspaces: 4, cpu: 16, memory: 32Gi, storage: 100Gi, pods: 200}.
	Hard tenancyv1alpha1.QuotaAmounts `json:"hard,omitempty"`
}

// Deadlines of the steps of a CloudSpace, each counted from the step's first try.
type Deadlines struct {
	// namespace is for NamespaceReady and PoliciesApplied. Default 2m.
	Namespace metav1.Duration `json:"namespace,omitzero"`

	// controlPlane is for ControlPlaneReady. Default 15m.
	ControlPlane metav1.Duration `json:"controlPlane,omitzero"`

	// kubeconfig is for KubeconfigReady. Default 5m.
	Kubeconfig metav1.Duration `json:"kubeconfig,omitzero"`

	// flux is for FluxReady and AdvisorReady. Default 10m.
	Flux metav1.Duration `json:"flux,omitzero"`

	// innerRelease bounds how long taking down waits for the releases inside a CloudSpace before it goes on without them.
	// Default 1m.
	InnerRelease metav1.Duration `json:"innerRelease,omitzero"`

	// release bounds how long taking down waits for any release, counted from the deletion of the CloudSpace. Then it goes on with the
	// kubeconfig and the host namespace; the CloudSpace itself is held until the releases are gone too. Default 5m.
	Release metav1.Duration `json:"release,omitzero"`
}

// Backoff is exponential: the first wait is base, each further one twice the last, at most max.
type Backoff struct {
	// base is the first wait. Default 5s.
	Base metav1.Duration `json:"base,omitzero"`

	// max is the longest wait. Default 5m.
	Max metav1.Duration `json:"max,omitzero"`
}

// Rollout bounds how many control planes that run are changed at a time: their Kubernetes version, size, or the platform's
// version of vCluster.
type Rollout struct {
	// maxConcurrent is how many are changed at a time by the platform, and how many by their own specs, 1 to 1000. Default 1.
	MaxConcurrent int `json:"maxConcurrent,omitempty"`

	// maxFailed is how many may fail with a change of the platform, 0 to 1000, before no further one is begun. Those that
	// failed with a change of their own spec do not count. Default 0.
	MaxFailed int `json:"maxFailed,omitempty"`
}

// Helm is how Flux installs the releases of a CloudSpace.
type Helm struct {
	// interval at which Flux looks at a release again without cause. Default 1h.
	Interval metav1.Duration `json:"interval,omitzero"`

	// timeout of one install or upgrade. Default 10m.
	Timeout metav1.Duration `json:"timeout,omitzero"`

	// serviceAccountName in kubeopera-system under which Flux installs the control planes; empty means Flux's own.
	ServiceAccountName string `json:"serviceAccountName,omitempty"`
}
