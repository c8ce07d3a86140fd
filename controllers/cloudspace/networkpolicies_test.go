// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package cloudspace

import (
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/yaml"

	configv1alpha1 "github.com/tantilium/cloud-runner/apis/config/v1alpha1"
	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
)

// policiesOf are the NetworkPolicies of a CloudSpace, by name.
func policiesOf(t *testing.T, alter func(*v1alpha1.CloudSpace, *configv1alpha1.PlatformConfig)) map[string]networkingv1.NetworkPolicySpec {
	t.Helper()
	platform, object := testPlatform(t), testCloudSpace("staging")
	if alter != nil {
		alter(object, platform)
	}
	specs := map[string]networkingv1.NetworkPolicySpec{}
	for _, policy := range desiredNetworkPolicies(newScope(object), platform) {
		if policy.Namespace != "vcluster-alice-default--staging" {
			t.Errorf("%s is in namespace %s", policy.Name, policy.Namespace)
		}
		specs[policy.Name] = policy.Spec
	}
	return specs
}

func TestNetworkPoliciesOfACloudSpace(t *testing.T) {
	var text []string
	for _, policy := range desiredNetworkPolicies(newScope(testCloudSpace("staging")), testPlatform(t)) {
		document, err := yaml.Marshal(policy)
		if err != nil {
			t.Fatal(err)
		}
		text = append(text, string(document))
	}
	compareGolden(t, "networkpolicies.golden.yaml", []byte(strings.Join(text, "---\n")))
}

// A tenant chooses every label of its pods but those that the syncer rewrites.
func TestNetworkPoliciesSelectByNoLabelOfTheTenant(t *testing.T) {
	for name, spec := range policiesOf(t, nil) {
		if len(spec.PodSelector.MatchExpressions) > 0 {
			t.Errorf("%s selects by expressions", name)
		}
		for key, value := range spec.PodSelector.MatchLabels {
			if !slices.Contains([]string{"release", "vcluster.loft.sh/managed-by"}, key) || value != "alice-default--staging" {
				t.Errorf("%s selects %s=%s", name, key, value)
			}
		}
		for _, rule := range spec.Egress {
			for _, peer := range rule.To {
				if peer.PodSelector != nil && peer.NamespaceSelector == nil && len(peer.PodSelector.MatchLabels) > 0 {
					t.Errorf("%s trusts labels of pods in the host namespace: %v", name, peer.PodSelector)
				}
			}
		}
	}
}

// reaches tells whether a policy lets its pods reach an address at any port.
func reaches(spec networkingv1.NetworkPolicySpec, address string) bool {
	to := netip.MustParseAddr(address)
	within := func(cidr string) bool { return netip.MustParsePrefix(cidr).Contains(to) }
	for _, rule := range spec.Egress {
		for _, peer := range rule.To {
			if peer.IPBlock != nil && within(peer.IPBlock.CIDR) && !slices.ContainsFunc(peer.IPBlock.Except, within) {
				return true
			}
		}
	}
	return false
}

func TestWhichAddressesWorkloadsReach(t *testing.T) {
	tests := map[string]struct {
		internet configv1alpha1.InternetAccess
		reached  []string
		denied   []string
	}{
		"with the Internet": {
			internet: configv1alpha1.InternetAllowed,
			reached:  []string{"1.1.1.1", "9.255.255.255", "172.32.0.1", "192.1.0.1", "223.255.255.255", "2606:4700::1111", "64:ff9b::101:101"},
			denied: []string{
				"0.0.0.1", "10.0.0.1", "10.55.0.1", "100.64.0.1", "100.127.255.255", "127.0.0.1", "169.254.169.254", "172.16.0.1", "172.31.255.255", "192.168.255.2",
				"192.0.0.192", "198.19.0.1", "224.0.0.1", "255.255.255.255", "168.63.129.16", "192.0.2.1", "203.0.113.9",
				"::1", "::7f00:1", "64:ff9b::a00:1", "64:ff9b::a9fe:a9fe", "64:ff9b::ac1f:1", "64:ff9b::c0a8:1", "64:ff9b::647f:1", "2002:a00:1::",
				"fd00:ec2::254", "fe80::1", "ff02::1", "2001:db8::9",
			},
		},
		"without": {internet: configv1alpha1.InternetDenied, denied: []string{"1.1.1.1", "10.0.0.1", "2606:4700::1111"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			spec := policiesOf(t, func(_ *v1alpha1.CloudSpace, platform *configv1alpha1.PlatformConfig) {
				platform.Network.Internet = tt.internet
			})[workloadsPolicy]
			for _, address := range tt.reached {
				if !reaches(spec, address) {
					t.Errorf("%s is not reached", address)
				}
			}
			for _, address := range tt.denied {
				if reaches(spec, address) {
					t.Errorf("%s is reached", address)
				}
			}
		})
	}
}

// Kubernetes refuses an exception that is not within its range.
func TestExceptionsAreWithinTheirRange(t *testing.T) {
	for _, peer := range internet(testPlatform(t)) {
		all := netip.MustParsePrefix(peer.IPBlock.CIDR)
		for _, except := range peer.IPBlock.Except {
			prefix, err := netip.ParsePrefix(except)
			if err != nil || prefix != prefix.Masked() || prefix.Bits() <= all.Bits() || prefix.Addr().Is4() != all.Addr().Is4() {
				t.Errorf("%s is not within %s", except, all)
			}
		}
	}
}

func TestControlPlanesReachNothingButTheHostsAPIServersAndDNS(t *testing.T) {
	spec := policiesOf(t, nil)[controlPlanePolicy]
	for address, want := range map[string]bool{"192.0.2.1": true, "10.55.0.1": true, "192.0.2.2": false, "1.1.1.1": false, "10.55.0.53": false} {
		if got := reaches(spec, address); got != want {
			t.Errorf("%s: reached %t, want %t", address, got, want)
		}
	}
}

func TestWhoReachesAControlPlane(t *testing.T) {
	for endpoint, want := range map[v1alpha1.EndpointType][]string{
		v1alpha1.EndpointInCluster:    {"flux-elsewhere", "kubeopera-core", "kubeopera-system"},
		v1alpha1.EndpointLoadBalancer: nil,
		v1alpha1.EndpointHostname:     nil,
	} {
		rules := policiesOf(t, func(object *v1alpha1.CloudSpace, platform *configv1alpha1.PlatformConfig) {
			object.Spec.Endpoint.Type, platform.Network.FluxNamespace = endpoint, "flux-elsewhere"
		})[controlPlanePolicy].Ingress
		if len(rules) != 1 || len(rules[0].Ports) != 1 || rules[0].Ports[0].Port.IntValue() != 8443 {
			t.Fatalf("%s: rules are %v, want one for port 8443", endpoint, rules)
		}
		if want == nil {
			if rules[0].From != nil {
				t.Errorf("%s: reached from %v, want from everywhere", endpoint, rules[0].From)
			}
			continue
		}
		if got := rules[0].From[0].NamespaceSelector.MatchExpressions[0].Values; !slices.Equal(got, want) {
			t.Errorf("%s: reached from %v, want %v", endpoint, got, want)
		}
	}
}

func TestRulesOfThePlatformAreAdded(t *testing.T) {
	block := func(cidr string) []networkingv1.NetworkPolicyEgressRule {
		return []networkingv1.NetworkPolicyEgressRule{{To: []networkingv1.NetworkPolicyPeer{{IPBlock: &networkingv1.IPBlock{CIDR: cidr}}}}}
	}
	specs := policiesOf(t, func(_ *v1alpha1.CloudSpace, platform *configv1alpha1.PlatformConfig) {
		platform.Network.WorkloadEgress, platform.Network.ControlPlaneEgress = block("10.20.0.0/24"), block("10.30.0.0/24")
	})
	for name, want := range map[string][2]bool{workloadsPolicy: {true, false}, controlPlanePolicy: {false, true}, isolationPolicy: {false, false}} {
		if got := [2]bool{reaches(specs[name], "10.20.0.1"), reaches(specs[name], "10.30.0.1")}; got != want {
			t.Errorf("%s reaches %v, want %v", name, got, want)
		}
	}
	if got := slices.Sorted(maps.Keys(specs)); len(got) != 3 {
		t.Errorf("policies are %v", got)
	}
}
