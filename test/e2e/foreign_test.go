//go:build e2e

// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
)

// foreignNamespace has the name of a host namespace, and says of itself that it belongs to the Tenant. It is refused and left
// alone, and once it is gone the Tenant gets on by itself.
func (h *host) foreignNamespace(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	foreign := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "vcluster-dave", Labels: map[string]string{
		v1alpha1.LabelTenant: "dave", v1alpha1.LabelCloudSpace: "default", v1alpha1.LabelOwnerUID: "nobody",
	}}}
	theirs := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "theirs", Namespace: foreign.Name}}
	g.Expect(h.asOperator(t).Create(t.Context(), foreign)).To(Succeed())
	g.Expect(h.Create(t.Context(), theirs)).To(Succeed())
	h.createTenant(t, "dave")
	g.Eventually(func(g Gomega) {
		condition := meta.FindStatusCondition(h.cloudSpace(t.Context(), g, "dave", "default").Status.Conditions, v1alpha1.ConditionNamespaceReady)
		g.Expect(condition).NotTo(BeNil())
		g.Expect(condition.Reason).To(Equal(v1alpha1.ReasonNotOurs))
		g.Expect(condition.Message).To(ContainSubstring(foreign.Name))
	}, short, interval).Should(Succeed())

	var after corev1.Namespace
	g.Expect(h.Get(t.Context(), client.ObjectKeyFromObject(foreign), &after)).To(Succeed())
	g.Expect(after.UID).To(Equal(foreign.UID))
	g.Expect(after.DeletionTimestamp).To(BeNil())
	g.Expect(after.Labels).To(Equal(foreign.Labels))
	g.Expect(h.Get(t.Context(), client.ObjectKeyFromObject(theirs), theirs)).To(Succeed())
	g.Expect(h.asOperator(t).Delete(t.Context(), foreign)).To(Succeed())
	h.waitForTenant(t, "dave")
	t.Run("a dead vCluster is deleted all the same", h.deadVirtualCluster)
}

// foreignFinalizer is on an object in a host namespace that is to go. The CloudSpace says which it is, its name is taken until
// somebody removes the finalizer, and then it goes by itself.
func (h *host) foreignFinalizer(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	held := &v1alpha1.CloudSpace{ObjectMeta: metav1.ObjectMeta{Name: "held", Namespace: "tenant-alice-default"}}
	again := held.DeepCopy()
	g.Expect(h.Create(t.Context(), held)).To(Succeed())
	finalized := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Name: "finalized", Namespace: "vcluster-alice-default--held", Finalizers: []string{"example.com/keeps"},
	}}
	g.Eventually(func() error { return h.Create(t.Context(), finalized) }, short, interval).Should(Succeed())
	t.Cleanup(func() { h.unfinalize(context.WithoutCancel(t.Context()), t, finalized) })
	g.Expect(h.Delete(t.Context(), held)).To(Succeed())

	g.Eventually(func(g Gomega) {
		step := waitingStep(h.cloudSpace(t.Context(), g, "alice-default", "held"))
		g.Expect(step.Step).To(Equal("RemoveNamespace"))
		g.Expect(step.Message).To(And(ContainSubstring("example.com/keeps"), ContainSubstring("configmaps")))
	}, removal, interval).Should(Succeed())
	g.Expect(apierrors.IsAlreadyExists(h.Create(t.Context(), again))).To(BeTrue())
	h.unfinalize(t.Context(), t, finalized)
	g.Eventually(func() bool {
		return apierrors.IsNotFound(h.Get(t.Context(), client.ObjectKeyFromObject(held), &v1alpha1.CloudSpace{}))
	}, short, interval).Should(BeTrue())
	h.nothingLeft(t, "alice-default--held")
}

// unfinalize removes all finalizers of an object, if it is there.
func (h *host) unfinalize(ctx context.Context, t *testing.T, object client.Object) {
	t.Helper()
	err := h.Patch(ctx, object, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))
	NewWithT(t).Expect(client.IgnoreNotFound(err)).To(Succeed())
}

// waitingStep is the first step of a deletion that is not done.
func waitingStep(cloudSpace *v1alpha1.CloudSpace) v1alpha1.DeletionStep {
	for _, step := range cloudSpace.Status.Deletion {
		if !step.Done {
			return step
		}
	}
	return v1alpha1.DeletionStep{}
}
