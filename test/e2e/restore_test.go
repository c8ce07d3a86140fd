//go:build e2e

// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
)

// afterSnapshot is a Tenant that the snapshot does not have.
const afterSnapshot = "mona"

// restored brings back a snapshot of the host's etcd. What the snapshot has runs on, untouched, with its data of today: that is in the
// etcd of each CloudSpace. What came after it is gone with all its traces, and can be made anew; a deletion that came after it is undone.
func (h *host) restored(t *testing.T) {
	g := NewWithT(t)
	ids := []string{"alice-default", "bob-default"}
	before := h.standing(t.Context(), g, ids...)
	hostcluster(t.Context(), t, "snapshot")

	h.createTenant(t, afterSnapshot)
	h.waitForTenant(t, afterSnapshot)
	written := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "after-the-snapshot", Namespace: "default"}}
	g.Expect(openCloudSpace(t, ids[0]).Create(t.Context(), written)).To(Succeed())
	displayed := &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: ids[0]}}
	g.Expect(h.Patch(t.Context(), displayed, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"displayName":"After the snapshot"}}`)))).To(Succeed())
	h.goes(t, ids[1])

	hostcluster(t.Context(), t, "restore")
	h.waitUntilGone(t, afterSnapshot)
	g.Expect(h.Get(t.Context(), client.ObjectKeyFromObject(displayed), displayed)).To(Succeed())
	g.Expect(displayed.Spec.DisplayName).NotTo(Equal("After the snapshot"), "the past is back")
	h.nothingLeft(t, afterSnapshot)
	h.createTenant(t, afterSnapshot)
	h.waitForTenant(t, afterSnapshot)

	for _, id := range ids {
		h.waitForTenant(t, id)
		g.Eventually(func() error {
			return openCloudSpace(t, id).Get(t.Context(), client.ObjectKey{Name: "default"}, &corev1.Namespace{})
		}, short, interval).Should(Succeed(), "the kubeconfig of %s opens it", id)
	}
	g.Expect(openCloudSpace(t, ids[0]).Delete(t.Context(), written)).To(Succeed(), "what the customer wrote after the snapshot is there")
	g.Expect(h.standing(t.Context(), g, ids...)).To(Equal(before))
	h.removeTenants(t, afterSnapshot)
	h.nothingLeft(t, afterSnapshot)
}

// goes has a Tenant on its way down as somebody means to stop it: all that keeps its CloudSpace is a protection that the snapshot does not have.
func (h *host) goes(t *testing.T, id string) {
	t.Helper()
	g := NewWithT(t)
	protected := &v1alpha1.CloudSpace{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant-" + id, Name: "default"}}
	g.Expect(h.Patch(t.Context(), protected, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"deletionProtection":true}}`)))).To(Succeed())
	t.Cleanup(func() {
		_ = h.Patch(context.WithoutCancel(t.Context()), protected, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"deletionProtection":null}}`)))
	})
	h.deleteTenant(t, id)
	g.Eventually(func(g Gomega) {
		var tenant v1alpha1.Tenant
		g.Expect(h.Get(t.Context(), client.ObjectKey{Name: id}, &tenant)).To(Succeed())
		g.Expect(tenant.Status.Conditions).To(ContainElement(HaveField("Message", ContainSubstring("CloudSpace default is protected from deletion"))))
	}, short, interval).Should(Succeed())
}

// standing is what stands of tenants, by identity: CloudSpaces, host namespaces, control planes with how often they were started, what is reserved.
func (h *host) standing(ctx context.Context, g Gomega, ids ...string) (found []string) {
	for _, id := range ids {
		var namespaces corev1.NamespaceList
		g.Expect(h.WithWatch.List(ctx, &namespaces, client.MatchingLabels{v1alpha1.LabelTenant: id})).To(Succeed())
		for i := range namespaces.Items {
			namespace := &namespaces.Items[i]
			found = append(found, fmt.Sprint(namespace.Name, " ", namespace.UID, " ", namespace.DeletionTimestamp))
			var pods corev1.PodList
			g.Expect(h.WithWatch.List(ctx, &pods, client.InNamespace(namespace.Name), client.HasLabels{"release"})).To(Succeed())
			for j := range pods.Items {
				found = append(found, startedAs(&pods.Items[j]))
			}
		}
		var cloudSpaces v1alpha1.CloudSpaceList
		g.Expect(h.WithWatch.List(ctx, &cloudSpaces, client.InNamespace("tenant-"+id))).To(Succeed())
		for i := range cloudSpaces.Items {
			found = append(found, fmt.Sprint(cloudSpaces.Items[i].Name, " ", cloudSpaces.Items[i].UID, " ", cloudSpaces.Items[i].DeletionTimestamp))
		}
		found = append(found, fmt.Sprint(id, " reserves ", h.reserved(ctx, g, id)))
	}
	return found
}

func startedAs(pod *corev1.Pod) string {
	starts := map[string]int32{}
	for i := range pod.Status.ContainerStatuses {
		starts[pod.Status.ContainerStatuses[i].Name] = pod.Status.ContainerStatuses[i].RestartCount
	}
	return fmt.Sprint(pod.Name, " ", pod.UID, " ", starts)
}

// reserved are the CloudSpaces of a tenant that have a reservation.
func (h *host) reserved(ctx context.Context, g Gomega, id string) (found []string) {
	var quota v1alpha1.TenantQuota
	g.Expect(client.IgnoreNotFound(h.Get(ctx, client.ObjectKey{Name: id}, &quota))).To(Succeed())
	for i := range quota.Status.Reservations {
		found = append(found, quota.Status.Reservations[i].CloudSpace)
	}
	return found
}
