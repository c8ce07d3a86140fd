//go:build e2e

// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
)

// recreation deletes a Tenant and creates one of the same name as soon as that is possible. The two have nothing in common.
func (h *host) recreation(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	kubeconfig := client.ObjectKey{Namespace: "kubeopera-system", Name: "tenant-bob-default-kubeconfig"}
	first := openCloudSpace(t, "bob-default")
	before := h.kubeconfigIn(t, g, kubeconfig, "config")
	mark := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "of-the-first"}}
	g.Expect(first.Create(t.Context(), mark)).To(Succeed())

	h.deleteTenant(t, "bob-default")
	again := func() error {
		return h.Create(t.Context(), &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "bob-default"}})
	}
	g.Expect(apierrors.IsAlreadyExists(again())).To(BeTrue(), "the name is free only when all of the first is gone")
	h.waitUntilGone(t, "bob-default")
	h.nothingLeft(t, "bob-default")
	g.Expect(again()).To(Succeed())
	h.waitForTenant(t, "bob-default")

	second := openCloudSpace(t, "bob-default")
	err := second.Get(t.Context(), client.ObjectKeyFromObject(mark), mark)
	g.Expect(apierrors.IsNotFound(err)).To(BeTrue(), "data of the first is in the second: %v", err)
	g.Expect(authorityIn(h.kubeconfigIn(t, g, kubeconfig, "config"))).NotTo(Equal(authorityIn(before)))
	g.Expect(first.WithWatch.List(t.Context(), &corev1.NamespaceList{})).NotTo(Succeed(), "the kubeconfig of the first opens the second")
}
