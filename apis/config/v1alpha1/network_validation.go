// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// defaultNetwork also fills in what Kubernetes would in a rule: what stands on the cluster is compared with what is here.
func defaultNetwork(n *Network) {
	if n.Internet == "" {
		n.Internet = InternetAllowed
	}
	if n.FluxNamespace == "" {
		n.FluxNamespace = "flux-system"
	}
	for _, rules := range [][]networkingv1.NetworkPolicyEgressRule{n.WorkloadEgress, n.ControlPlaneEgress} {
		for _, rule := range rules {
			for i := range rule.Ports {
				if rule.Ports[i].Protocol == nil {
					rule.Ports[i].Protocol = new(corev1.ProtocolTCP)
				}
			}
		}
	}
}

func validateNetwork(n *Network, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if supported := sets.New(InternetAllowed, InternetDenied); !supported.Has(n.Internet) {
		errs = append(errs, field.NotSupported(path.Child("internet"), n.Internet, sets.List(supported)))
	}
	for i, denied := range n.DeniedCIDRs {
		errs = append(errs, validateDenied(denied, path.Child("deniedCIDRs").Index(i))...)
	}
	errs = append(errs, validateEgress(n.WorkloadEgress, path.Child("workloadEgress"))...)
	errs = append(errs, validateEgress(n.ControlPlaneEgress, path.Child("controlPlaneEgress"))...)
	errs = append(errs, invalid(path.Child("fluxNamespace"), n.FluxNamespace, validation.IsDNS1123Label(n.FluxNamespace))...)
	for i, server := range n.APIServers {
		if _, err := netip.ParseAddrPort(server); err != nil {
			errs = append(errs, field.Invalid(path.Child("apiServers").Index(i), server, "must be an address and a port such as 192.0.2.1:6443"))
		}
	}
	if n.Resolver != "" {
		if _, err := netip.ParseAddr(n.Resolver); err != nil {
			errs = append(errs, field.Invalid(path.Child("resolver"), n.Resolver, "must be an address such as 10.96.0.53"))
		}
	}
	return errs
}

// validateDenied takes ranges as a NetworkPolicy has them: within all addresses, not all of them, and without bits beyond the prefix.
func validateDenied(denied string, path *field.Path) field.ErrorList {
	prefix, err := netip.ParsePrefix(denied)
	if err != nil || prefix.Bits() == 0 || prefix != prefix.Masked() {
		return field.ErrorList{field.Invalid(path, denied, "must be an address range such as 203.0.113.0/24")}
	}
	return nil
}

// validateEgress refuses a rule without a destination, which would open everything. What else is wrong with it the API server says when
// the platform is tried: most of it needs the validation of Kubernetes itself.
func validateEgress(rules []networkingv1.NetworkPolicyEgressRule, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, rule := range rules {
		to := path.Index(i).Child("to")
		if len(rule.To) == 0 {
			errs = append(errs, field.Required(to, "a rule without a destination lets everything through"))
		}
		for j, peer := range rule.To {
			errs = append(errs, validatePeer(peer, to.Index(j))...)
		}
	}
	return errs
}

func validatePeer(peer networkingv1.NetworkPolicyPeer, path *field.Path) field.ErrorList {
	selects := peer.PodSelector != nil || peer.NamespaceSelector != nil
	if (peer.IPBlock != nil) == selects {
		return field.ErrorList{field.Invalid(path, "", "must be either an ipBlock or selectors")}
	}
	if peer.IPBlock == nil {
		return nil
	}
	block, err := netip.ParsePrefix(peer.IPBlock.CIDR)
	if err != nil || block != block.Masked() {
		return field.ErrorList{field.Invalid(path.Child("ipBlock", "cidr"), peer.IPBlock.CIDR, "must be an address range such as 203.0.113.0/24")}
	}
	var errs field.ErrorList
	for i, except := range peer.IPBlock.Except {
		inner, err := netip.ParsePrefix(except)
		if err != nil || inner.Bits() <= block.Bits() || !block.Contains(inner.Addr()) {
			errs = append(errs, field.Invalid(path.Child("ipBlock", "except").Index(i), except, "must be a range within the cidr"))
		}
	}
	return errs
}
