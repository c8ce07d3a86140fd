//go:build e2e

// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
)

// gitOps lets Flux on the host apply Namespace, Tenant, TenantQuota and CloudSpace in one go, and believes it when it says
// that all is healthy.
func (h *host) gitOps(t *testing.T) {
	g := NewWithT(t)
	pushManifests(t, "manifests/customer", "1", "testdata/gitops")
	source := &sourcev1.OCIRepository{
		ObjectMeta: metav1.ObjectMeta{Name: "customer", Namespace: "flux-system"},
		Spec: sourcev1.OCIRepositorySpec{
			URL: "oci://" + registry + "/manifests/customer", Insecure: true,
			Reference: &sourcev1.OCIRepositoryRef{Tag: "1"},
			Interval:  metav1.Duration{Duration: time.Hour},
		},
	}
	customer := &kustomizev1.Kustomization{
		ObjectMeta: metav1.ObjectMeta{Name: "customer", Namespace: "flux-system"},
		Spec: kustomizev1.KustomizationSpec{
			SourceRef: kustomizev1.CrossNamespaceSourceReference{Kind: sourcev1.OCIRepositoryKind, Name: "customer"},
			Interval:  metav1.Duration{Duration: time.Hour},
			Timeout:   &metav1.Duration{Duration: provisioning},
			Prune:     true,
			Wait:      true,
		},
	}
	g.Expect(h.Create(t.Context(), source)).To(Succeed())
	g.Expect(h.Create(t.Context(), customer)).To(Succeed())
	t.Cleanup(func() {
		_ = h.Delete(t.Context(), customer)
		_ = h.Delete(t.Context(), source)
	})

	g.Eventually(func(g Gomega) {
		g.Expect(h.Get(t.Context(), client.ObjectKeyFromObject(customer), customer)).To(Succeed())
		g.Expect(meta.IsStatusConditionTrue(customer.Status.Conditions, "Ready")).To(BeTrue(), "%v", customer.Status.Conditions)
	}, provisioning, interval).Should(Succeed())

	var tenant v1alpha1.Tenant
	g.Expect(h.Get(t.Context(), client.ObjectKey{Name: "carol"}, &tenant)).To(Succeed())
	g.Expect(tenant.Status.Phase).To(Equal(v1alpha1.TenantReady))
	g.Expect(tenant.Status.CloudSpaces).To(Equal(v1alpha1.CloudSpaceCounts{Total: 2, Active: 2}))
	var team v1alpha1.CloudSpace
	g.Expect(h.Get(t.Context(), client.ObjectKey{Namespace: "tenant-carol", Name: "team"}, &team)).To(Succeed())
	g.Expect(team.Status.Phase).To(Equal(v1alpha1.CloudSpaceActive))
}
