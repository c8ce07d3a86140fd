// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package cloudspace

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	configv1alpha1 "github.com/tantilium/cloud-runner/apis/config/v1alpha1"
	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
	"github.com/tantilium/cloud-runner/internal/names"
)

// Values of the vCluster chart, as far as we set them. The chart's schema and vCluster's own decoder are strict: tests
// check these types against both. Every change of a value restarts every control plane.
type Values struct {
	ControlPlane     ControlPlaneValues     `json:"controlPlane"`
	Sync             SyncValues             `json:"sync"`
	Networking       NetworkingValues       `json:"networking"`
	Policies         PoliciesValues         `json:"policies"`
	ExportKubeConfig ExportKubeConfigValues `json:"exportKubeConfig"`
	ServiceCIDR      string                 `json:"serviceCIDR"`
	Telemetry        EnabledValue           `json:"telemetry"`
	Logging          LoggingValues          `json:"logging"`
}

// EnabledValue switches a part on or off.
type EnabledValue struct {
	Enabled bool `json:"enabled"`
}

// ImageValues name an image. The chart's registry is in front unless advanced.defaultImageRegistry is set.
type ImageValues struct {
	Registry   string `json:"registry,omitempty"`
	Repository string `json:"repository,omitempty"`
	Tag        string `json:"tag,omitempty"`
}

// ControlPlaneValues are the parts of the control plane.
type ControlPlaneValues struct {
	Advanced     AdvancedValues     `json:"advanced"`
	Distro       DistroValues       `json:"distro"`
	BackingStore BackingStoreValues `json:"backingStore"`
	Proxy        ProxyValues        `json:"proxy"`
	Service      *ServiceValues     `json:"service,omitempty"`
	CoreDNS      CoreDNSValues      `json:"coredns"`
	StatefulSet  StatefulSetValues  `json:"statefulSet"`
}

// AdvancedValues hold the registry that replaces those of all images, and the disruption budget.
type AdvancedValues struct {
	DefaultImageRegistry   string                        `json:"defaultImageRegistry"`
	WorkloadServiceAccount *WorkloadServiceAccountValues `json:"workloadServiceAccount,omitempty"`
	PodDisruptionBudget    *PodDisruptionBudgetValues    `json:"podDisruptionBudget,omitempty"`
}

// WorkloadServiceAccountValues are the ServiceAccount of all synced pods. A pod that names pull secrets of its own has none of these.
type WorkloadServiceAccountValues struct {
	ImagePullSecrets []corev1.LocalObjectReference `json:"imagePullSecrets"`
}

// PodDisruptionBudgetValues bound how many control planes may be evicted at a time.
type PodDisruptionBudgetValues struct {
	Enabled                    bool   `json:"enabled"`
	MaxUnavailable             int32  `json:"maxUnavailable"`
	UnhealthyPodEvictionPolicy string `json:"unhealthyPodEvictionPolicy"`
}

// DistroValues choose the Kubernetes that is served.
type DistroValues struct {
	K8s K8sValues `json:"k8s"`
}

// K8sValues are upstream Kubernetes with its own scheduler. The resources are those of the init container that brings the
// binaries.
type K8sValues struct {
	Enabled   bool                        `json:"enabled"`
	Image     ImageValues                 `json:"image"`
	Scheduler EnabledValue                `json:"scheduler"`
	Resources corev1.ResourceRequirements `json:"resources"`
}

// BackingStoreValues choose etcd of its own.
type BackingStoreValues struct {
	Etcd struct {
		Deploy EtcdDeployValues `json:"deploy"`
	} `json:"etcd"`
}

// EtcdDeployValues are the etcd StatefulSet.
type EtcdDeployValues struct {
	Enabled     bool                  `json:"enabled"`
	StatefulSet EtcdStatefulSetValues `json:"statefulSet"`
}

// EtcdStatefulSetValues shape the members.
type EtcdStatefulSetValues struct {
	Image              ImageValues                 `json:"image"`
	Resources          corev1.ResourceRequirements `json:"resources"`
	EnableServiceLinks bool                        `json:"enableServiceLinks"`
	Scheduling         SchedulingValues            `json:"scheduling"`
	HighAvailability   ReplicasValue               `json:"highAvailability"`
	Persistence        PersistenceValues           `json:"persistence"`
}

// SchedulingValues set the PriorityClass.
type SchedulingValues struct {
	PriorityClassName string `json:"priorityClassName"`
}

// ReplicasValue sets a number of replicas.
type ReplicasValue struct {
	Replicas int32 `json:"replicas"`
}

// PersistenceValues are the volume of an etcd member.
type PersistenceValues struct {
	VolumeClaim VolumeClaimValues `json:"volumeClaim"`
}

// VolumeClaimValues are kept when a member goes; they end with the host namespace.
type VolumeClaimValues struct {
	Enabled         bool   `json:"enabled"`
	Size            string `json:"size"`
	StorageClass    string `json:"storageClass"`
	RetentionPolicy string `json:"retentionPolicy"`
}

// ProxyValues are the names in the API server's certificate.
type ProxyValues struct {
	ExtraSANs []string `json:"extraSANs"`
}

// ServiceValues shape the Service of the API server; left out, it is one within the host cluster.
type ServiceValues struct {
	Annotations map[string]string `json:"annotations,omitempty"`
	Spec        ServiceSpecValues `json:"spec"`
}

// ServiceSpecValues are a part of a Service's spec; the chart adds ports and selector.
type ServiceSpecValues struct {
	Type                          string `json:"type"`
	AllocateLoadBalancerNodePorts bool   `json:"allocateLoadBalancerNodePorts"`
	LoadBalancerClass             string `json:"loadBalancerClass,omitempty"`
}

// CoreDNSValues are the DNS of the CloudSpace.
type CoreDNSValues struct {
	Deployment      CoreDNSDeploymentValues `json:"deployment"`
	OverwriteConfig string                  `json:"overwriteConfig"`
}

// CoreDNSDeploymentValues shape its Deployment. The image must carry its registry: vCluster takes it as one text.
type CoreDNSDeploymentValues struct {
	Image                     string                            `json:"image"`
	Replicas                  int32                             `json:"replicas"`
	Resources                 corev1.ResourceRequirements       `json:"resources"`
	TopologySpreadConstraints []corev1.TopologySpreadConstraint `json:"topologySpreadConstraints"`
}

// StatefulSetValues are the pod of the control plane; with etcd of its own it is a Deployment, whatever the name.
type StatefulSetValues struct {
	Image              ImageValues                 `json:"image"`
	EnableServiceLinks bool                        `json:"enableServiceLinks"`
	Resources          corev1.ResourceRequirements `json:"resources"`
	HighAvailability   HighAvailabilityValues      `json:"highAvailability"`
	Scheduling         *SpreadValues               `json:"scheduling,omitempty"`
}

// HighAvailabilityValues are the number of control planes, and the lease that one of them holds, in seconds.
type HighAvailabilityValues struct {
	Replicas      int32 `json:"replicas"`
	LeaseDuration int32 `json:"leaseDuration,omitempty"`
	RenewDeadline int32 `json:"renewDeadline,omitempty"`
	RetryPeriod   int32 `json:"retryPeriod,omitempty"`
}

// SpreadValues spread control planes.
type SpreadValues struct {
	TopologySpreadConstraints []corev1.TopologySpreadConstraint `json:"topologySpreadConstraints"`
}

// SyncValues choose what is copied between CloudSpace and host.
type SyncValues struct {
	FromHost FromHostValues `json:"fromHost"`
	ToHost   ToHostValues   `json:"toHost"`
}

// FromHostValues bring the host's nodes in: a scheduler of its own needs them.
type FromHostValues struct {
	Nodes NodesValues `json:"nodes"`
}

// NodesValues bring all nodes in, without the list of images on them.
type NodesValues struct {
	Enabled          bool `json:"enabled"`
	ClearImageStatus bool `json:"clearImageStatus"`
	Selector         struct {
		All bool `json:"all"`
	} `json:"selector"`
}

// ToHostValues keep hand-made Endpoints away from the host. EndpointSlices stay on: without them the syncer of 0.36.1 hangs.
type ToHostValues struct {
	Endpoints EnabledValue `json:"endpoints"`
	Pods      PodsValues   `json:"pods"`
}

// PodsValues are how workloads are copied: ServiceAccount tokens in Secrets, not in annotations, and always with the
// PriorityClass of workloads.
type PodsValues struct {
	UseSecretsForSATokens bool               `json:"useSecretsForSATokens"`
	PriorityClassName     string             `json:"priorityClassName"`
	RewriteHosts          RewriteHostsValues `json:"rewriteHosts"`
}

// RewriteHostsValues are the init container that StatefulSet pods get.
type RewriteHostsValues struct {
	InitContainer struct {
		Resources corev1.ResourceRequirements `json:"resources"`
	} `json:"initContainer"`
}

// NetworkingValues leave the kubelets out: the proxy for them makes a Service per node in the host namespace.
type NetworkingValues struct {
	Advanced struct {
		ProxyKubelets ProxyKubeletsValues `json:"proxyKubelets"`
	} `json:"advanced"`
}

// ProxyKubeletsValues switch the proxy for kubelets.
type ProxyKubeletsValues struct {
	ByHostname bool `json:"byHostname"`
	ByIP       bool `json:"byIP"`
}

// PoliciesValues are off: the operator owns these objects, and a change of the chart's would restart the control plane.
type PoliciesValues struct {
	ResourceQuota       EnabledValue `json:"resourceQuota"`
	LimitRange          EnabledValue `json:"limitRange"`
	NetworkPolicy       EnabledValue `json:"networkPolicy"`
	PodSecurityStandard string       `json:"podSecurityStandard"`
}

// ExportKubeConfigValues shape the kubeconfig that vCluster writes.
type ExportKubeConfigValues struct {
	Server  string `json:"server"`
	Context string `json:"context"`
}

// LoggingValues shape the control plane's log.
type LoggingValues struct {
	Encoding string `json:"encoding"`
}

// Registries of the images as they are published.
const (
	githubRegistry     = "ghcr.io"
	kubernetesRegistry = "registry.k8s.io"
	dockerRegistry     = "docker.io"
)

// desiredValues are the values for one CloudSpace.
func desiredValues(n names.CloudSpace, spec v1alpha1.CloudSpaceSpec, version configv1alpha1.KubernetesVersion, size configv1alpha1.Size, platform *configv1alpha1.PlatformConfig) Values {
	values := Values{
		ControlPlane: ControlPlaneValues{
			Advanced: advancedValues(platform.Images),
			Distro: DistroValues{K8s: K8sValues{
				Enabled:   true,
				Image:     ImageValues{Registry: githubRegistry, Repository: "loft-sh/kubernetes", Tag: version.Version},
				Scheduler: EnabledValue{Enabled: true},
				Resources: kubernetesBinaries,
			}},
			Proxy:       ProxyValues{ExtraSANs: []string{n.ServiceHost(), n.ServiceHost() + ".cluster.local"}},
			CoreDNS:     CoreDNSValues{Deployment: coreDNSValues(version, size, platform), OverwriteConfig: coreDNSConfig(platform.Network.Resolver)},
			StatefulSet: controlPlanePodValues(spec.ControlPlane, size, platform),
		},
		Sync: SyncValues{
			FromHost: FromHostValues{Nodes: NodesValues{Enabled: true, ClearImageStatus: true}},
			ToHost: ToHostValues{Pods: PodsValues{
				UseSecretsForSATokens: true,
				PriorityClassName:     names.WorkloadPriorityClass,
			}},
		},
		Policies:         PoliciesValues{PodSecurityStandard: "baseline"},
		ExportKubeConfig: ExportKubeConfigValues{Server: n.Endpoint(), Context: n.Context()},
		ServiceCIDR:      platform.Host.ServiceCIDR,
		Logging:          LoggingValues{Encoding: "json"},
	}
	values.ControlPlane.BackingStore.Etcd.Deploy = etcdValues(spec.ControlPlane, version, size)
	values.Sync.FromHost.Nodes.Selector.All = true
	values.Sync.ToHost.Pods.RewriteHosts.InitContainer.Resources = requirements("30m", "64Mi", "30m", "64Mi")
	if spec.ControlPlane.HighAvailability {
		highAvailabilityValues(&values, n)
	}
	endpointValues(&values, spec.Endpoint, platform.Endpoint)
	return values
}

func advancedValues(images configv1alpha1.Images) AdvancedValues {
	values := AdvancedValues{DefaultImageRegistry: images.Registry}
	if images.WorkloadsUsePullSecrets {
		values.WorkloadServiceAccount = &WorkloadServiceAccountValues{ImagePullSecrets: pullSecretReferences(images.PullSecrets)}
	}
	return values
}

func controlPlanePodValues(controlPlane v1alpha1.ControlPlane, size configv1alpha1.Size, platform *configv1alpha1.PlatformConfig) StatefulSetValues {
	return StatefulSetValues{
		Image:            ImageValues{Registry: githubRegistry, Repository: "loft-sh/vcluster-oss", Tag: platform.Charts.VCluster.Version},
		Resources:        size.ControlPlane,
		HighAvailability: HighAvailabilityValues{Replicas: membersOf(controlPlane).controlPlane},
	}
}

func etcdValues(controlPlane v1alpha1.ControlPlane, version configv1alpha1.KubernetesVersion, size configv1alpha1.Size) EtcdDeployValues {
	return EtcdDeployValues{
		Enabled: true,
		StatefulSet: EtcdStatefulSetValues{
			Image:            ImageValues{Registry: kubernetesRegistry, Repository: "etcd", Tag: version.Etcd},
			Resources:        size.Etcd,
			Scheduling:       SchedulingValues{PriorityClassName: names.ControlPlanePriorityClass},
			HighAvailability: ReplicasValue{Replicas: membersOf(controlPlane).etcd},
			Persistence: PersistenceValues{VolumeClaim: VolumeClaimValues{
				Enabled:         true,
				Size:            controlPlane.Etcd.Storage.String(),
				StorageClass:    controlPlane.Etcd.StorageClassName,
				RetentionPolicy: "Retain",
			}},
		},
	}
}

func coreDNSValues(version configv1alpha1.KubernetesVersion, size configv1alpha1.Size, platform *configv1alpha1.PlatformConfig) CoreDNSDeploymentValues {
	registry := dockerRegistry
	if platform.Images.Registry != "" {
		registry = platform.Images.Registry
	}
	return CoreDNSDeploymentValues{
		Image:                     registry + "/coredns/coredns:" + version.CoreDNS,
		Replicas:                  1,
		Resources:                 size.CoreDNS,
		TopologySpreadConstraints: []corev1.TopologySpreadConstraint{},
	}
}

func requirements(requestCPU, requestMemory, limitCPU, limitMemory string) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(requestCPU), corev1.ResourceMemory: resource.MustParse(requestMemory)},
		Limits:   corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(limitCPU), corev1.ResourceMemory: resource.MustParse(limitMemory)},
	}
}
