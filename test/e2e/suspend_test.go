//go:build e2e

// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
)

// suspended takes a CloudSpace with data and an app down to nothing, and brings both back.
func (h *host) suspended(t *testing.T, inside cluster) {
	t.Helper()
	g := NewWithT(t)
	kept := keepsake(measured)
	g.Expect(inside.Create(t.Context(), kept)).To(Succeed())
	one := int32(1)
	pod := sleeper("app", func(*corev1.PodSpec) {})
	app := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "app", Namespace: "default"},
		Spec: appsv1.DeploymentSpec{
			Replicas: &one, Selector: &metav1.LabelSelector{MatchLabels: pod.Labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: pod.Labels}, Spec: pod.Spec},
		},
	}
	g.Expect(inside.Create(t.Context(), app)).To(Succeed())
	g.Eventually(inside.availableReplicas(t, app), short, interval).Should(BeEquivalentTo(1))
	hard := h.total(t.Context(), g).Spec.Hard

	h.suspend(t, measured, true)
	h.isSuspended(t, measured)
	g.Expect(h.total(t.Context(), g).Spec.Hard).To(BeComparableTo(hard), "what it was granted stays its own")
	g.Consistently(func(g Gomega) {
		var flux helmv2.HelmRelease
		g.Expect(h.Get(t.Context(), client.ObjectKey{Namespace: "kubeopera-system", Name: measured + "-flux"}, &flux)).To(Succeed())
		g.Expect(meta.IsStatusConditionFalse(flux.Status.Conditions, "Ready")).To(BeFalse(), "%v", flux.Status.Conditions)
		g.Expect(h.cloudSpace(t.Context(), g, measured, "default").Status.Phase).To(BeEquivalentTo("Suspended"))
	}, "3s", interval).Should(Succeed())

	h.suspend(t, measured, false)
	h.waitForCloudSpace(t, "tenant-"+measured, "default")
	h.waitForTenant(t, measured)
	g.Eventually(func(g Gomega) {
		g.Expect(inside.Get(t.Context(), client.ObjectKeyFromObject(kept), kept)).To(Succeed())
		g.Expect(inside.availableReplicas(t, app)(g)).To(BeEquivalentTo(1))
	}, short, interval).Should(Succeed())
	g.Expect(kept.Data).To(Equal(keepsake(measured).Data))
}

func (h *host) suspend(t *testing.T, id string, suspend bool) {
	t.Helper()
	space := &v1alpha1.CloudSpace{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant-" + id, Name: "default"}}
	patch := fmt.Appendf(nil, `{"spec":{"suspend":%t}}`, suspend)
	NewWithT(t).Expect(h.Patch(t.Context(), space, client.RawPatch(types.MergePatchType, patch))).To(Succeed())
}

// isSuspended waits until nothing of the default CloudSpace runs, and both it and its Tenant say so.
func (h *host) isSuspended(t *testing.T, id string) {
	t.Helper()
	NewWithT(t).Eventually(func(g Gomega) {
		space := h.cloudSpace(t.Context(), g, id, "default")
		g.Expect(space.Status.Phase).To(BeEquivalentTo("Suspended"), "%v", space.Status.Conditions)
		var tenant v1alpha1.Tenant
		g.Expect(h.Get(t.Context(), client.ObjectKey{Name: id}, &tenant)).To(Succeed())
		g.Expect(tenant.Status.Phase).To(BeEquivalentTo("Suspended"), "%v", tenant.Status.Conditions)
		var pods corev1.PodList
		g.Expect(h.WithWatch.List(t.Context(), &pods, client.InNamespace(space.Status.HostNamespace))).To(Succeed())
		g.Expect(pods.Items).To(BeEmpty())
	}, provisioning, interval).Should(Succeed())
}

// availableReplicas gives how many pods of a Deployment are available now.
func (c cluster) availableReplicas(t *testing.T, deployment *appsv1.Deployment) func(Gomega) int32 {
	t.Helper()
	return func(g Gomega) int32 {
		found := &appsv1.Deployment{}
		g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(deployment), found)).To(Succeed())
		return found.Status.AvailableReplicas
	}
}
