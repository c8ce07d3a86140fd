//go:build e2e

// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
)

// deletion takes every Tenant down, one of them with its CloudSpace suspended, and looks for anything that carries one of their names.
func (h *host) deletion(t *testing.T) {
	h.suspend(t, measured, true)
	h.isSuspended(t, measured)
	for _, id := range everyTenant {
		h.deleteTenant(t, id)
	}
	h.deletedInOrder(t, "alice-default")
	h.removeTenants(t, everyTenant...)
	h.nothingLeft(t, everyTenant...)
}

// deletedInOrder watches the CloudSpaces of a Tenant go: no step is done before the one ahead of it, what is done stays done,
// and when one is gone, so is its host namespace.
func (h *host) deletedInOrder(t *testing.T, id string) {
	t.Helper()
	var left v1alpha1.CloudSpaceList
	gone := map[string]bool{}
	begin := func() {
		NewWithT(t).Expect(h.WithWatch.List(t.Context(), &left, client.InNamespace("tenant-"+id))).To(Succeed())
		h.deleteTenant(t, id)
	}
	h.follow(t, &v1alpha1.CloudSpaceList{}, begin, func(event watch.Event) bool {
		cloudSpace, ok := event.Object.(*v1alpha1.CloudSpace)
		if !ok {
			return false
		}
		inOrder(t, cloudSpace)
		if event.Type == watch.Deleted {
			gone[cloudSpace.Name] = true
			err := h.Get(t.Context(), client.ObjectKey{Name: cloudSpace.Status.HostNamespace}, &corev1.Namespace{})
			NewWithT(t).Expect(apierrors.IsNotFound(err)).To(BeTrue(), "CloudSpace %s is gone before its host namespace", cloudSpace.Name)
		}
		return len(gone) == len(left.Items)
	}, client.InNamespace("tenant-"+id))
}

func inOrder(t *testing.T, cloudSpace *v1alpha1.CloudSpace) {
	t.Helper()
	waiting := ""
	for _, step := range cloudSpace.Status.Deletion {
		if step.Done && waiting != "" {
			t.Errorf("CloudSpace %s: step %s is done, %s before it is not", cloudSpace.Name, step.Step, waiting)
		}
		if !step.Done {
			waiting = step.Step
		}
	}
}

// nothingLeft looks for anything on the host cluster that carries the name of a Tenant.
func (h *host) nothingLeft(t *testing.T, tenants ...string) {
	t.Helper()
	for _, list := range []client.ObjectList{
		&corev1.NamespaceList{}, &corev1.PersistentVolumeList{}, &corev1.SecretList{}, &corev1.PodList{},
		&helmv2.HelmReleaseList{}, &rbacv1.ClusterRoleList{}, &rbacv1.ClusterRoleBindingList{},
	} {
		NewWithT(t).Eventually(func(g Gomega) {
			g.Expect(h.WithWatch.List(t.Context(), list)).To(Succeed())
			g.Expect(remains(g, list, tenants)).To(BeEmpty())
		}, short, interval).Should(Succeed())
	}
}

func remains(g Gomega, list client.ObjectList, tenants []string) []string {
	objects, err := meta.ExtractList(list)
	g.Expect(err).NotTo(HaveOccurred())
	var found []string
	for _, object := range objects {
		accessor, err := meta.Accessor(object)
		g.Expect(err).NotTo(HaveOccurred())
		name := nameOnHost(accessor)
		for _, tenant := range tenants {
			if strings.Contains(name, tenant) {
				found = append(found, name)
			}
		}
	}
	return found
}

// nameOnHost is where an object belongs to: for a volume, that is the claim that it was made for.
func nameOnHost(object metav1.Object) string {
	if volume, ok := object.(*corev1.PersistentVolume); ok && volume.Spec.ClaimRef != nil {
		return volume.Spec.ClaimRef.Namespace + "/" + volume.Spec.ClaimRef.Name
	}
	return object.GetNamespace() + "/" + object.GetName()
}
