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
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// deletion takes every Tenant down and looks for anything that carries one of their names.
func (h *host) deletion(t *testing.T) {
	tenants := []string{"alice-default", "bob-default", "carol"}
	h.removeTenants(tenants...)
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
		name := accessor.GetNamespace() + "/" + accessor.GetName()
		if volume, ok := object.(*corev1.PersistentVolume); ok && volume.Spec.ClaimRef != nil {
			name = volume.Spec.ClaimRef.Namespace + "/" + volume.Spec.ClaimRef.Name
		}
		for _, tenant := range tenants {
			if strings.Contains(name, tenant) {
				found = append(found, name)
			}
		}
	}
	return found
}
