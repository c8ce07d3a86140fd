//go:build e2e

// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"testing"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
)

// registryPort is the host cluster's registry's.
const registryPort = 5000

// chartSourceDown keeps Flux from the registry, and makes it lose the charts that it fetched before. What runs is not touched,
// what is new waits, and goes on by itself when the registry is back.
func (h *host) chartSourceDown(t *testing.T) {
	g := NewWithT(t)
	running := h.activeCloudSpaces(t)
	g.Expect(running).NotTo(BeEmpty())
	cut := withoutRegistry("source-controller")
	g.Expect(h.Create(t.Context(), cut)).To(Succeed())
	t.Cleanup(func() { _ = h.Delete(context.WithoutCancel(t.Context()), cut) })
	h.loseCharts(t, client.InNamespace(cut.Namespace), client.MatchingLabels(cut.Spec.PodSelector.MatchLabels))

	h.createTenant(t, "erin")
	g.Eventually(func(g Gomega) {
		ready := meta.FindStatusCondition(h.cloudSpace(t.Context(), g, "erin", "default").Status.Conditions, v1alpha1.ConditionReady)
		g.Expect(ready).NotTo(BeNil())
		g.Expect(ready.Reason).To(Equal(v1alpha1.ReasonChartNotReady))
	}, short, interval).Should(Succeed())
	g.Expect(h.activeCloudSpaces(t)).To(Equal(running), "conditions of CloudSpaces that run, and since when")
	g.Expect(h.Delete(t.Context(), cut)).To(Succeed())
	h.waitForTenant(t, "erin")
	g.Expect(h.activeCloudSpaces(t)).To(HaveLen(len(running) + 1))
}

// loseCharts kills the pods that have fetched charts until those that follow cannot: one that has just started is not kept from the registry yet.
func (h *host) loseCharts(t *testing.T, pods ...client.DeleteAllOfOption) {
	t.Helper()
	NewWithT(t).Eventually(func(g Gomega) {
		h.killPods(t, pods...)
		g.Eventually(func(g Gomega) {
			var charts sourcev1.HelmChartList
			g.Expect(h.WithWatch.List(t.Context(), &charts, client.InNamespace("kubeopera-system"))).To(Succeed())
			g.Expect(charts.Items).NotTo(BeEmpty())
			for i := range charts.Items {
				g.Expect(meta.IsStatusConditionFalse(charts.Items[i].Status.Conditions, v1alpha1.ConditionReady)).To(BeTrue(), charts.Items[i].Name)
			}
		}, short/4, interval).Should(Succeed())
	}, 2*short, interval).Should(Succeed())
}

// activeCloudSpaces are the conditions of every CloudSpace that is Active, by its host name.
func (h *host) activeCloudSpaces(t *testing.T) map[string][]metav1.Condition {
	t.Helper()
	var all v1alpha1.CloudSpaceList
	NewWithT(t).Expect(h.WithWatch.List(t.Context(), &all)).To(Succeed())
	active := map[string][]metav1.Condition{}
	for _, cloudSpace := range all.Items {
		if cloudSpace.Status.Phase == v1alpha1.CloudSpaceActive {
			active[cloudSpace.Status.HostName] = cloudSpace.Status.Conditions
		}
	}
	return active
}

// withoutRegistry is a policy for one of Flux's controllers: it reaches everything but the registry.
func withoutRegistry(controller string) *networkingv1.NetworkPolicy {
	ports := func(from, to int32) networkingv1.NetworkPolicyPort {
		return networkingv1.NetworkPolicyPort{Protocol: new(corev1.ProtocolTCP), Port: new(intstr.FromInt32(from)), EndPort: &to}
	}
	names := networkingv1.NetworkPolicyPort{Protocol: new(corev1.ProtocolUDP), Port: new(intstr.FromInt32(53))}
	return &networkingv1.NetworkPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "e2e-registry-down", Namespace: "flux-system"},
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{"app": controller}},
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeEgress},
			Egress: []networkingv1.NetworkPolicyEgressRule{{
				Ports: []networkingv1.NetworkPolicyPort{names, ports(1, registryPort-1), ports(registryPort+1, 65535)},
			}},
		},
	}
}
