// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	networkingv1 "k8s.io/api/networking/v1"
	netutils "k8s.io/utils/net"
)

// InternetAccess says whether workloads reach the Internet.
type InternetAccess string

// Internet access of workloads.
const (
	InternetAllowed InternetAccess = "Allowed"
	InternetDenied  InternetAccess = "Denied"
)

// Network says what the pods of CloudSpaces can reach. Pods of different CloudSpaces never reach each other.
type Network struct {
	// internet is whether workloads reach addresses outside of private ranges: Allowed or Denied. Default Allowed.
	Internet InternetAccess `json:"internet,omitempty"`

	// deniedCIDRs are ranges that workloads do not reach although they are not private: those of the host's nodes and pods where
	// they are public, a bastion, an internal service with a public address. The service range, the host's API servers and the metadata
	// services of clouds are denied anyway.
	DeniedCIDRs []string `json:"deniedCIDRs,omitempty"`

	// workloadEgress are further rules of what workloads may reach, as in a NetworkPolicy; each must say where to. They hold for every
	// CloudSpace.
	WorkloadEgress []networkingv1.NetworkPolicyEgressRule `json:"workloadEgress,omitempty"`

	// controlPlaneEgress are the same for control planes, which otherwise reach the host's API servers and its DNS alone: pods with the label
	// k8s-app=kube-dns in kube-system.
	ControlPlaneEgress []networkingv1.NetworkPolicyEgressRule `json:"controlPlaneEgress,omitempty"`

	// fluxNamespace is where Flux runs on the host. Its pods reach control planes. Default flux-system.
	FluxNamespace string `json:"fluxNamespace,omitempty"`

	// apiServers are the host's API servers as control planes reach them, each ADDRESS:PORT. Left out, they are those that the Service
	// kubernetes in the namespace default has, and are followed.
	APIServers []string `json:"apiServers,omitempty"`

	// resolver is the address of the DNS that CloudSpaces ask for names outside of them. It must not know names of the host cluster. Left
	// out, it is that of the Service cloudspace-resolver in kubeopera-core. With another one, workloadEgress must let CoreDNS reach it. Changing
	// it restarts control planes.
	Resolver string `json:"resolver,omitempty"`
}

// ServiceNetwork is the valid serviceCIDR as NetworkPolicies have a range: without bits beyond its prefix.
func (h Host) ServiceNetwork() string {
	_, network, err := netutils.ParseCIDRSloppy(h.ServiceCIDR)
	if err != nil {
		return h.ServiceCIDR
	}
	return network.String()
}
