//go:build e2e

// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
)

// neighbours adds a second CloudSpace for the same Tenant and a second Tenant beside it.
func (h *host) neighbours(t *testing.T) {
	g := NewWithT(t)
	g.Expect(h.Create(t.Context(), fromFile(t, "../../config/samples/cloudspace.yaml", &v1alpha1.CloudSpace{}))).To(Succeed())
	g.Expect(h.Create(t.Context(), &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "bob-default"}})).To(Succeed())
	h.waitForCloudSpace(t, "tenant-alice-default", "staging")
	h.waitForTenant(t, "bob-default")

	for _, hostName := range []string{"alice-default", "alice-default--staging", "bob-default"} {
		h.ownObjects(t, hostName)
	}
	t.Run("each kubeconfig opens its own CloudSpace only", h.kubeconfigsAreApart)
	t.Run("what one makes, no other sees", func(t *testing.T) {
		g := NewWithT(t)
		staging, bob := openCloudSpace(t, "alice-default--staging"), openCloudSpace(t, "bob-default")
		mark := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "only-in-staging"}}
		g.Expect(staging.Create(t.Context(), mark)).To(Succeed())
		for name, other := range map[string]cluster{"bob-default": bob, "alice-default": openCloudSpace(t, "alice-default")} {
			err := other.Get(t.Context(), client.ObjectKey{Name: mark.Name}, &corev1.Namespace{})
			g.Expect(client.IgnoreNotFound(err)).To(Succeed())
			g.Expect(err).To(HaveOccurred(), "%s sees a namespace of alice-default--staging", name)
		}
	})
}

// ownObjects finds what belongs to a CloudSpace under its own names, and made for it alone.
func (h *host) ownObjects(t *testing.T, hostName string) {
	t.Helper()
	g := NewWithT(t)
	var namespace corev1.Namespace
	g.Expect(h.Get(t.Context(), client.ObjectKey{Name: "vcluster-" + hostName}, &namespace)).To(Succeed())
	var secret corev1.Secret
	g.Expect(h.Get(t.Context(), client.ObjectKey{Namespace: "kubeopera-system", Name: "cloudspace-" + hostName + "-kubeconfig"}, &secret)).To(Succeed())
	g.Expect(secret.Labels["tenancy.kubeopera.io/owner-uid"]).To(Equal(namespace.Labels["tenancy.kubeopera.io/owner-uid"]))
	var pods corev1.PodList
	g.Expect(h.WithWatch.List(t.Context(), &pods, client.InNamespace(namespace.Name))).To(Succeed())
	g.Expect(len(pods.Items)).To(BeNumerically(">=", 6), "control plane, etcd, CoreDNS and three Flux controllers")
	for i := range pods.Items {
		g.Expect(pods.Items[i].Spec.PriorityClassName).To(BeElementOf("cloudspace-control-plane", "cloudspace-workload"), pods.Items[i].Name)
	}
}

// kubeconfigsAreApart shows one CloudSpace's credentials to another.
func (h *host) kubeconfigsAreApart(t *testing.T) {
	g := NewWithT(t)
	alice, bob := openCloudSpace(t, "alice-default"), openCloudSpace(t, "bob-default")
	mixed := rest.CopyConfig(bob.config)
	mixed.CertData, mixed.KeyData = alice.config.CertData, alice.config.KeyData
	intruder, err := client.New(mixed, client.Options{})
	if err == nil {
		err = intruder.List(t.Context(), &corev1.NamespaceList{})
	}
	g.Expect(err).To(MatchError(Or(ContainSubstring("Unauthorized"), ContainSubstring("provide credentials"))))
}

func (h *host) waitForCloudSpace(t *testing.T, namespace, name string) {
	t.Helper()
	NewWithT(t).Eventually(func(g Gomega) {
		var cloudSpace v1alpha1.CloudSpace
		g.Expect(h.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, &cloudSpace)).To(Succeed())
		g.Expect(cloudSpace.Status.Phase).To(Equal(v1alpha1.CloudSpaceActive), "%v", cloudSpace.Status.Conditions)
		g.Expect(meta.IsStatusConditionTrue(cloudSpace.Status.Conditions, "Ready")).To(BeTrue())
	}, provisioning, interval).Should(Succeed())
}

func (h *host) waitForTenant(t *testing.T, id string) {
	t.Helper()
	NewWithT(t).Eventually(func(g Gomega) {
		var tenant v1alpha1.Tenant
		g.Expect(h.Get(t.Context(), client.ObjectKey{Name: id}, &tenant)).To(Succeed())
		g.Expect(tenant.Status.Phase).To(Equal(v1alpha1.TenantReady), "%v", tenant.Status.Conditions)
	}, provisioning, interval).Should(Succeed())
}
