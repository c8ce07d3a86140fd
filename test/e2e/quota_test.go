//go:build e2e

// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
)

// tenantQuota bounds a tenant with real quota controllers: CloudSpaces wait for room, and their objects are counted.
func (h *host) tenantQuota(t *testing.T) {
	const id = "bob-default"
	most := h.allow(t, id, `{"cloudspaces":"1"}`)
	var made []*v1alpha1.CloudSpace
	var refused error
	for i := 0; refused == nil && i < 40; i++ {
		space := &v1alpha1.CloudSpace{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant-" + id, Name: fmt.Sprintf("waits-%d", i)}}
		if refused = h.Create(t.Context(), space); refused == nil {
			made = append(made, space)
		}
	}
	g := NewWithT(t)
	g.Expect(apierrors.IsForbidden(refused)).To(BeTrue(), "%v", refused)
	g.Expect(refused).To(MatchError(ContainSubstring("exceeded quota: cloudspace")))
	g.Expect(made).To(HaveLen(most-1), "the default one is there already")
	last := made[len(made)-1]
	h.quotaReserved(t, last, metav1.ConditionFalse, v1alpha1.ReasonQuotaExhausted)
	g.Expect(last.Status.Phase).To(Equal(v1alpha1.CloudSpacePending))
	for _, space := range made[1:] {
		g.Expect(h.Delete(t.Context(), space)).To(Succeed())
	}

	first := made[0]
	h.allow(t, id, `{"cloudspaces":"2"}`)
	h.quotaReserved(t, first, metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
	g.Expect(h.Delete(t.Context(), first)).To(Succeed())
	g.Eventually(func(g Gomega) {
		var quota v1alpha1.TenantQuota
		g.Expect(h.Get(t.Context(), client.ObjectKey{Name: id}, &quota)).To(Succeed())
		g.Expect(quota.Status.Reservations).To(HaveLen(1))
		g.Expect(quota.Status.Usage).To(HaveKeyWithValue(v1alpha1.QuotaCloudSpaces, "1/2"))
		err := h.Get(t.Context(), client.ObjectKey{Name: "vcluster-" + id + "--waits-0"}, &corev1.Namespace{})
		g.Expect(apierrors.IsNotFound(err)).To(BeTrue(), "the reservation ended before the host namespace: %v", err)
	}, 2*time.Minute, interval).Should(Succeed())
}

// allow sets what a tenant may use, as an administrator does, and tells how many CloudSpace objects there can be then: as many, rounded up, and 20
// that wait. One more is no mistake: the operator makes Kubernetes count with it.
func (h *host) allow(t *testing.T, id, hard string) (objects int) {
	t.Helper()
	g := NewWithT(t)
	quota := &v1alpha1.TenantQuota{ObjectMeta: metav1.ObjectMeta{Name: id}}
	patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"hard":`+hard+`}}`))
	g.Expect(h.Patch(t.Context(), quota, patch)).To(Succeed())
	allowed := quota.Spec.Hard[v1alpha1.QuotaCloudSpaces]
	least := int(allowed.Value()+allowed.Value()%2) + 20
	g.Eventually(func(g Gomega) {
		var bound corev1.ResourceQuota
		g.Expect(h.Get(t.Context(), client.ObjectKey{Namespace: "tenant-" + id, Name: "cloudspace"}, &bound)).To(Succeed())
		counted := bound.Status.Hard["count/cloudspaces.tenancy.kubeopera.io"]
		objects = int(counted.Value())
		g.Expect(objects).To(BeElementOf(least, least+1))
	}, 30*time.Second, interval).Should(Succeed())
	return objects
}

func (h *host) quotaReserved(t *testing.T, space *v1alpha1.CloudSpace, status metav1.ConditionStatus, reason string) {
	t.Helper()
	NewWithT(t).Eventually(func(g Gomega) {
		g.Expect(h.Get(t.Context(), client.ObjectKeyFromObject(space), space)).To(Succeed())
		reserved := meta.FindStatusCondition(space.Status.Conditions, v1alpha1.ConditionQuotaReserved)
		g.Expect(reserved).NotTo(BeNil())
		g.Expect(reserved.Status).To(Equal(status), "%+v", reserved)
		g.Expect(reserved.Reason).To(Equal(reason))
	}, time.Minute, interval).Should(Succeed())
}
