// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

// Package names holds every object name that is derived from a tenant id or a CloudSpace. The contract fixes them: other
// programs find our objects by these names.
package names

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// Namespaces of the platform on the host cluster.
const (
	// SystemNamespace holds tenant-controller, all HelmReleases with their Helm storage, and the kubeconfig Secrets.
	SystemNamespace = "kubeopera-system"
	// CoreNamespace holds what serves CloudSpaces, the resolver among it.
	CoreNamespace = "kubeopera-core"
	// FluxNamespace is where Flux runs inside a CloudSpace.
	FluxNamespace = "flux-system"
)

// HostQuota is the ResourceQuota of all in a host namespace, and of the objects in a tenant namespace.
const HostQuota = "cloudspace"

// ResolverService is the DNS that CloudSpaces ask for names outside of them, in the core namespace; also the name of its Deployment, and
// the value of its pods' label app.kubernetes.io/name. ResolverPort is where the pods listen.
const (
	ResolverService = "cloudspace-resolver"
	ResolverPort    = 1053
)

// PriorityClasses that config/ ships. The class of the control plane is higher, so that workloads never evict it.
const (
	ControlPlanePriorityClass = "cloudspace-control-plane"
	WorkloadPriorityClass     = "cloudspace-workload"
)

// Limits of the two parts of a host name. Together they keep <host name>-etcd within the 52 characters that a StatefulSet
// can have (its pods carry the name and a hash in a label of at most 63).
const (
	MaxTenantID       = 24
	MaxCloudSpaceName = 20
)

const (
	defaultCloudSpace     = "default"
	separator             = "--"
	tenantNamespacePrefix = "tenant-"
	pullSecretPrefix      = "cloudspace-pull-"
)

// part is the pattern of a tenant id and of a CloudSpace name: it cannot contain the separator, which makes the host name
// map one to one.
var part = regexp.MustCompile("^[a-z]([a-z0-9]|-[a-z0-9])*$")

// TenantNamespace is the namespace of a tenant's CloudSpace objects.
func TenantNamespace(id string) string { return tenantNamespacePrefix + id }

// TenantID is the tenant whose namespace this would be; false when no tenant can have it.
func TenantID(namespace string) (string, bool) {
	id, found := strings.CutPrefix(namespace, tenantNamespacePrefix)
	return id, found && validTenantID(id)
}

// TenantKubeconfigSecret holds the kubeconfig of a tenant's default CloudSpace, in the system namespace.
func TenantKubeconfigSecret(id string) string { return "tenant-" + id + "-kubeconfig" }

// PullSecret is the copy of a pull secret of the platform in a host namespace.
func PullSecret(source string) string { return pullSecretPrefix + source }

// IsPullSecret tells whether a Secret in a host namespace has the name of such a copy.
func IsPullSecret(name string) bool { return strings.HasPrefix(name, pullSecretPrefix) }

// CloudSpace gives the names that belong to one CloudSpace. Its zero value belongs to none.
type CloudSpace struct {
	host string
}

// ForCloudSpace gives the names of a tenant's CloudSpace. The error says which part is not a valid name.
func ForCloudSpace(tenantID, name string) (CloudSpace, error) {
	if !validTenantID(tenantID) {
		return CloudSpace{}, fmt.Errorf("%q is not a tenant id", tenantID)
	}
	if !validCloudSpaceName(name) {
		return CloudSpace{}, fmt.Errorf("%q is not a CloudSpace name", name)
	}
	if name == defaultCloudSpace {
		return CloudSpace{host: tenantID}, nil
	}
	return CloudSpace{host: tenantID + separator + name}, nil
}

// ParseHostName gives back the tenant id and CloudSpace name that a host name was made of.
func ParseHostName(host string) (tenantID, name string, err error) {
	tenantID, name, found := strings.Cut(host, separator)
	if !found {
		name = defaultCloudSpace
	}
	if !validTenantID(tenantID) || !validCloudSpaceName(name) || (found && name == defaultCloudSpace) {
		return "", "", errors.New("not the host name of a CloudSpace")
	}
	return tenantID, name, nil
}

// HostName is the CloudSpace's name on the host cluster and the name of its Helm release and HelmRelease.
func (c CloudSpace) HostName() string { return c.host }

// HostNamespace holds the control plane and the synced workloads.
func (c CloudSpace) HostNamespace() string { return "vcluster-" + c.host }

// ControlPlaneRelease is the HelmRelease of the vCluster.
func (c CloudSpace) ControlPlaneRelease() string { return c.host }

// EtcdStatefulSet runs the CloudSpace's etcd, in the host namespace.
func (c CloudSpace) EtcdStatefulSet() string { return c.host + "-etcd" }

// FluxRelease is the HelmRelease of Flux inside.
func (c CloudSpace) FluxRelease() string { return c.host + "-flux" }

// AdvisorRelease is the HelmRelease of the App Advisor inside.
func (c CloudSpace) AdvisorRelease() string { return c.host + "-advisor" }

// KubeconfigSecret holds the administrator's kubeconfig, in the system namespace.
func (c CloudSpace) KubeconfigSecret() string { return "cloudspace-" + c.host + "-kubeconfig" }

// InternalKubeconfigSecret holds the same with the server within the host cluster, where the CloudSpace has an endpoint outside
// of it; in the system namespace, for Flux.
func (c CloudSpace) InternalKubeconfigSecret() string { return c.KubeconfigSecret() + "-internal" }

// SourceSecret is where vCluster writes its kubeconfig, in the host namespace. What it holds is not to be trusted.
func (c CloudSpace) SourceSecret() string { return "vc-" + c.host }

// ConfigSecret is where the vCluster chart keeps the control plane's configuration, in the host namespace.
func (c CloudSpace) ConfigSecret() string { return "vc-config-" + c.host }

// Context is the name of cluster, user and context in the kubeconfig.
func (c CloudSpace) Context() string { return "cloudspace-" + c.host }

// ServiceHost is the DNS name of the CloudSpace's API server within the host cluster, without the cluster's domain.
func (c CloudSpace) ServiceHost() string { return c.host + "." + c.HostNamespace() + ".svc" }

// Endpoint is the URL of the CloudSpace's API server within the host cluster.
func (c CloudSpace) Endpoint() string { return "https://" + c.ServiceHost() + ":443" }

// IsTenantID tells whether a text can be the id of a tenant.
func IsTenantID(id string) bool { return validTenantID(id) }

func validTenantID(id string) bool { return len(id) <= MaxTenantID && part.MatchString(id) }

func validCloudSpaceName(name string) bool {
	return len(name) <= MaxCloudSpaceName && part.MatchString(name)
}
