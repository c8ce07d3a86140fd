//go:build e2e

// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
)

// withFifty is a Tenant that is deleted with fifty CloudSpaces: one that runs, and the rest suspended from the start, which have all that a
// CloudSpace has on the host cluster but its control plane.
const withFifty = "lena"

// fiftyAtOnce deletes a Tenant with many CloudSpaces. Of each the reservation is given up when its host namespace is gone, and not before.
func (h *host) fiftyAtOnce(t *testing.T) {
	const all = 50
	g := NewWithT(t)
	h.createTenant(t, withFifty)
	h.waitForTenant(t, withFifty)
	h.allow(t, withFifty, fmt.Sprintf(`{"cloudspaces":"%d","cpu":"200","memory":"400Gi","storage":"1Ti","pods":"5k"}`, all))
	var spaces v1alpha1.CloudSpaceList
	in := client.InNamespace("tenant-" + withFifty)
	for i := range all - 1 {
		g.Expect(h.Create(t.Context(), &v1alpha1.CloudSpace{
			ObjectMeta: metav1.ObjectMeta{Namespace: "tenant-" + withFifty, Name: fmt.Sprintf("rests-%02d", i)}, Spec: v1alpha1.CloudSpaceSpec{Suspend: true},
		})).To(Succeed())
	}
	g.Eventually(func(g Gomega) {
		g.Expect(h.WithWatch.List(t.Context(), &spaces, in)).To(Succeed())
		phases := map[v1alpha1.CloudSpacePhase]int{}
		for i := range spaces.Items {
			phases[spaces.Items[i].Status.Phase]++
		}
		g.Expect(phases).To(Equal(map[v1alpha1.CloudSpacePhase]int{v1alpha1.CloudSpaceActive: 1, v1alpha1.CloudSpaceSuspended: all - 1}))
		g.Expect(h.reserved(t.Context(), g, withFifty)).To(HaveLen(all))
	}, provisioning, interval).Should(Succeed())

	gone := 0
	h.follow(t, &v1alpha1.CloudSpaceList{}, func() { h.deleteTenant(t, withFifty) }, func(event watch.Event) bool {
		space, ok := event.Object.(*v1alpha1.CloudSpace)
		if !ok {
			return false
		}
		inOrder(t, space)
		h.reservedWhileThere(t, withFifty)
		if event.Type == watch.Deleted {
			gone++
			err := h.Get(t.Context(), client.ObjectKey{Name: space.Status.HostNamespace}, &corev1.Namespace{})
			g.Expect(apierrors.IsNotFound(err)).To(BeTrue(), "CloudSpace %s is gone before its host namespace", space.Name)
		}
		return gone == all
	}, in)
	h.waitUntilGone(t, withFifty)
	h.nothingLeft(t, withFifty)
}

// reservedWhileThere looks at what is reserved, and then at what is there: namespaces only go, so each that is left had its reservation.
func (h *host) reservedWhileThere(t *testing.T, id string) {
	t.Helper()
	g := NewWithT(t)
	reserved := h.reserved(t.Context(), g, id)
	var left corev1.NamespaceList
	g.Expect(h.WithWatch.List(t.Context(), &left, client.MatchingLabels{v1alpha1.LabelTenant: id}, client.HasLabels{v1alpha1.LabelCloudSpace})).To(Succeed())
	for i := range left.Items {
		g.Expect(reserved).To(ContainElement(left.Items[i].Labels[v1alpha1.LabelCloudSpace]), "namespace %s is there", left.Items[i].Name)
	}
}
