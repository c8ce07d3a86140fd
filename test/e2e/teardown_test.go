//go:build e2e

// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// deadVirtualCluster loses its API server, its etcd and its volume, and is deleted then. What is inside cannot be asked to go any
// more, and is not waited for.
func (h *host) deadVirtualCluster(t *testing.T) {
	in := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name, Namespace: "vcluster-dave"} }
	h.scale(t.Context(), t, &appsv1.Deployment{ObjectMeta: in("dave")}, 0)
	h.scale(t.Context(), t, &appsv1.StatefulSet{ObjectMeta: in("dave-etcd")}, 0)
	NewWithT(t).Expect(h.Delete(t.Context(), &corev1.PersistentVolumeClaim{ObjectMeta: in("data-dave-etcd-0")})).To(Succeed())
	h.killPods(t, client.InNamespace("vcluster-dave"), client.MatchingLabels{"release": "dave"})
	h.deleteTenant(t, "dave")
	h.waitUntilGone(t, "dave")
	h.nothingLeft(t, "dave")
}

// helmControllerStopped deletes a Tenant while nobody uninstalls releases. That is said, and it goes on when the controller is back.
func (h *host) helmControllerStopped(t *testing.T) {
	g := NewWithT(t)
	controller := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "helm-controller", Namespace: "flux-system"}}
	h.scale(t.Context(), t, controller, 0)
	t.Cleanup(func() { h.scale(context.WithoutCancel(t.Context()), t, controller, 1) })
	h.killPods(t, client.InNamespace(controller.Namespace), client.MatchingLabels{"app": controller.Name})
	h.deleteTenant(t, "grace")
	g.Eventually(func(g Gomega) {
		step := waitingStep(h.cloudSpace(t.Context(), g, "grace", "default"))
		g.Expect(step.Step).To(Equal("ReleaseInner"))
		g.Expect(step.Message).To(And(ContainSubstring("grace-flux"), ContainSubstring("helm-controller has not uninstalled it")))
	}, removal, interval).Should(Succeed())
	h.scale(t.Context(), t, controller, 1)
	h.waitUntilGone(t, "grace")
	h.nothingLeft(t, "grace")
}
