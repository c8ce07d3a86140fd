// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package cloudspace

import (
	"context"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	configv1alpha1 "github.com/tantilium/cloud-runner/apis/config/v1alpha1"
	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
	"github.com/tantilium/cloud-runner/internal/apply"
	"github.com/tantilium/cloud-runner/internal/names"
)

// NetworkPolicies of a host namespace.
const (
	isolationPolicy    = "cloudspace"
	controlPlanePolicy = "cloudspace-control-plane"
	workloadsPolicy    = "cloudspace-workloads"
)

// Labels that policies select by. Of the labels of a synced pod the syncer sets these itself; every other key is the tenant's.
const (
	labelRelease   = "release"
	labelManagedBy = "vcluster.loft.sh/managed-by"
)

// Ports of pods: that of a control plane's API server, and DNS.
const (
	apiServerPort = 8443
	dnsPort       = 53
)

// Addresses that are no part of the Internet: private and local ranges, multicast, metadata services of clouds that have others, and, as
// IPv6 may reach IPv4, the same by way of it.
var (
	privateIPv4 = []string{
		"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "168.63.129.16/32", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24",
		"192.168.0.0/16", "198.18.0.0/15", "224.0.0.0/3",
	}
	privateIPv6 = []string{
		"::/96", "64:ff9b::a00:0/104", "64:ff9b::6440:0/106", "64:ff9b::7f00:0/104", "64:ff9b::a9fe:0/112", "64:ff9b::ac10:0/108",
		"64:ff9b::c0a8:0/112", "64:ff9b:1::/48", "2002::/16", "fc00::/7", "fe80::/10", "ff00::/8",
	}
)

func (r *Reconciler) observeNetworkPolicies(ctx context.Context, s *scope) error {
	s.observed.policies = map[string]*networkingv1.NetworkPolicy{}
	for _, name := range []string{isolationPolicy, controlPlanePolicy, workloadsPolicy} {
		var policy *networkingv1.NetworkPolicy
		if err := apply.Read(ctx, r.Client, &policy, s.names.HostNamespace(), name); err != nil {
			return err
		}
		s.observed.policies[name] = policy
	}
	return nil
}

// ensureNetworkPolicies isolates the host namespace before anything runs there.
func (r *Reconciler) ensureNetworkPolicies(ctx context.Context, s *scope) (err error) {
	for _, desired := range desiredNetworkPolicies(s, r.Platform) {
		name := desired.Name
		if s.observed.policies[name], err = apply.Ensure(ctx, r.Applier, s.owner, s.observed.policies[name], desired); err != nil {
			return err
		}
	}
	return nil
}

// desiredNetworkPolicies add up: each allows, none forbids.
func desiredNetworkPolicies(s *scope, platform *configv1alpha1.PlatformConfig) []*networkingv1.NetworkPolicy {
	return []*networkingv1.NetworkPolicy{
		desiredIsolation(s),
		desiredControlPlaneAccess(s, &platform.Network),
		desiredWorkloadAccess(s, platform),
	}
}

// desiredIsolation denies everything but what stays within the CloudSpace.
func desiredIsolation(s *scope) *networkingv1.NetworkPolicy {
	within := []networkingv1.NetworkPolicyPeer{{PodSelector: &metav1.LabelSelector{}}}
	return networkPolicy(s, isolationPolicy, networkingv1.NetworkPolicySpec{
		PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress},
		Ingress:     []networkingv1.NetworkPolicyIngressRule{{From: within}},
		Egress:      []networkingv1.NetworkPolicyEgressRule{{To: within}},
	})
}

// desiredControlPlaneAccess lets the platform and Flux reach the API server. The syncer reaches the host's API server and DNS, and
// nothing else: what a tenant makes an API server call, webhooks for one, is called from there.
func desiredControlPlaneAccess(s *scope, network *configv1alpha1.Network) *networkingv1.NetworkPolicy {
	egress := []networkingv1.NetworkPolicyEgressRule{{
		To:    []networkingv1.NetworkPolicyPeer{pods(metav1.NamespaceSystem, "k8s-app", "kube-dns")},
		Ports: ports(dnsPort, corev1.ProtocolUDP, corev1.ProtocolTCP),
	}}
	for _, server := range network.APIServers {
		at := netip.MustParseAddrPort(server)
		egress = append(egress, networkingv1.NetworkPolicyEgressRule{
			To:    []networkingv1.NetworkPolicyPeer{{IPBlock: &networkingv1.IPBlock{CIDR: single(at.Addr())}}},
			Ports: ports(int32(at.Port()), corev1.ProtocolTCP),
		})
	}
	return networkPolicy(s, controlPlanePolicy, networkingv1.NetworkPolicySpec{
		PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{labelRelease: s.names.HostName()}},
		PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress},
		Ingress: []networkingv1.NetworkPolicyIngressRule{{
			From:  callers(s.object.Spec.Endpoint, network),
			Ports: ports(apiServerPort, corev1.ProtocolTCP),
		}},
		Egress: append(egress, network.ControlPlaneEgress...),
	})
}

// callers are who reaches a control plane; none named means everybody, which is what an endpoint outside the host cluster is for: load
// balancers and ingress controllers come from addresses that nobody knows beforehand, and the API server asks who it is.
func callers(endpoint v1alpha1.Endpoint, network *configv1alpha1.Network) []networkingv1.NetworkPolicyPeer {
	if endpoint.Type == v1alpha1.EndpointLoadBalancer || endpoint.Type == v1alpha1.EndpointHostname {
		return nil
	}
	return []networkingv1.NetworkPolicyPeer{{NamespaceSelector: &metav1.LabelSelector{
		MatchExpressions: []metav1.LabelSelectorRequirement{{
			Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpIn,
			Values: []string{network.FluxNamespace, names.CoreNamespace, names.SystemNamespace},
		}},
	}}}
}

// desiredWorkloadAccess is what workloads reach beyond their CloudSpace: the resolver, and the Internet if they may.
func desiredWorkloadAccess(s *scope, platform *configv1alpha1.PlatformConfig) *networkingv1.NetworkPolicy {
	egress := []networkingv1.NetworkPolicyEgressRule{{
		To:    []networkingv1.NetworkPolicyPeer{pods(names.CoreNamespace, "app.kubernetes.io/name", names.ResolverService)},
		Ports: ports(names.ResolverPort, corev1.ProtocolUDP, corev1.ProtocolTCP),
	}}
	if platform.Network.Internet != configv1alpha1.InternetDenied {
		egress = append(egress, networkingv1.NetworkPolicyEgressRule{To: internet(platform)})
	}
	return networkPolicy(s, workloadsPolicy, networkingv1.NetworkPolicySpec{
		PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{labelManagedBy: s.names.HostName()}},
		PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeEgress},
		Egress:      append(egress, platform.Network.WorkloadEgress...),
	})
}

// internet is every address but those that are private, the host's, or denied.
func internet(platform *configv1alpha1.PlatformConfig) []networkingv1.NetworkPolicyPeer {
	denied := append([]string{platform.Host.ServiceNetwork()}, platform.Network.DeniedCIDRs...)
	for _, server := range platform.Network.APIServers {
		denied = append(denied, single(netip.MustParseAddrPort(server).Addr()))
	}
	var four, six []string
	for _, cidr := range denied {
		if strings.Contains(cidr, ":") {
			six = append(six, cidr)
		} else {
			four = append(four, cidr)
		}
	}
	return []networkingv1.NetworkPolicyPeer{
		{IPBlock: &networkingv1.IPBlock{CIDR: "0.0.0.0/0", Except: uncovered(privateIPv4, four)}},
		{IPBlock: &networkingv1.IPBlock{CIDR: "::/0", Except: uncovered(privateIPv6, six)}},
	}
}

// uncovered adds those ranges that are not in one of the first already.
func uncovered(base, more []string) []string {
	all := slices.Clone(base)
	for _, cidr := range more {
		added := netip.MustParsePrefix(cidr)
		covered := slices.ContainsFunc(all, func(known string) bool {
			prefix := netip.MustParsePrefix(known)
			return prefix.Bits() <= added.Bits() && prefix.Contains(added.Addr())
		})
		if !covered {
			all = append(all, cidr)
		}
	}
	return all
}

func networkPolicy(s *scope, name string, spec networkingv1.NetworkPolicySpec) *networkingv1.NetworkPolicy {
	return &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: s.names.HostNamespace()}, Spec: spec}
}

func pods(namespace, label, value string) networkingv1.NetworkPolicyPeer {
	return networkingv1.NetworkPolicyPeer{
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}},
		PodSelector:       &metav1.LabelSelector{MatchLabels: map[string]string{label: value}},
	}
}

func ports(port int32, protocols ...corev1.Protocol) []networkingv1.NetworkPolicyPort {
	var all []networkingv1.NetworkPolicyPort
	for _, protocol := range protocols {
		all = append(all, networkingv1.NetworkPolicyPort{Protocol: new(protocol), Port: new(intstr.FromInt32(port))})
	}
	return all
}

// single is the range of one address.
func single(address netip.Addr) string { return netip.PrefixFrom(address, address.BitLen()).String() }
