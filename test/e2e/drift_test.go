//go:build e2e

// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
)

// comeback is how long it may take until what was removed or altered by hand is as it was.
const comeback = 30 * time.Second

// removedByHand takes from a CloudSpace what the platform and what the vCluster chart made of it. All is back soon, and so is the
// CloudSpace, with its data.
func (h *host) removedByHand(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	inside := openCloudSpace(t, "alice-default--staging")
	kept := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "kept", Namespace: "default"}}
	g.Expect(inside.Create(t.Context(), kept)).To(Succeed())

	release := &helmv2.HelmRelease{ObjectMeta: metav1.ObjectMeta{Name: "alice-default--staging", Namespace: "kubeopera-system"}}
	g.Expect(h.Patch(t.Context(), release, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"suspend":true}}`)))).To(Succeed())
	h.comeBack(t, ofStaging()...)
	g.Expect(h.Get(t.Context(), client.ObjectKeyFromObject(release), release)).To(Succeed())
	g.Expect(release.Spec.Suspend).To(BeFalse())
	h.labelsComeBack(t, append(ofStaging()[:7], &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "vcluster-alice-default--staging"}})...)
	h.waitForCloudSpace(t, "tenant-alice-default", "staging")
	h.comeBack(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: release.Namespace, Name: "cloudspace-alice-default--staging-kubeconfig"}})
	g.Eventually(func() error {
		return inside.Get(t.Context(), client.ObjectKeyFromObject(kept), kept)
	}, short, interval).Should(Succeed())
}

// comeBack removes objects, and waits until there are others in their places.
func (h *host) comeBack(t *testing.T, removed ...client.Object) {
	t.Helper()
	g, operator := NewWithT(t), h.asOperator(t)
	for _, object := range removed {
		g.Expect(h.Get(t.Context(), client.ObjectKeyFromObject(object), object)).To(Succeed())
		g.Expect(operator.Delete(t.Context(), object)).To(Succeed())
	}
	since := time.Now()
	for _, object := range removed {
		before := object.GetUID()
		g.Eventually(func(g Gomega) {
			g.Expect(h.Get(t.Context(), client.ObjectKeyFromObject(object), object)).To(Succeed())
			g.Expect(object.GetUID()).NotTo(Equal(before))
		}, time.Until(since.Add(comeback)), interval).Should(Succeed(), "%T %s", object, object.GetName())
	}
}

// labelsComeBack takes off objects the labels by which they are found, and all annotations and owners that they have. Labels and
// annotations are back soon, on the same objects, which are otherwise what they were.
func (h *host) labelsComeBack(t *testing.T, objects ...client.Object) {
	t.Helper()
	g, operator := NewWithT(t), h.asOperator(t)
	before := make([]client.Object, len(objects))
	for i, object := range objects {
		g.Expect(h.Get(t.Context(), client.ObjectKeyFromObject(object), object)).To(Succeed())
		before[i], _ = object.DeepCopyObject().(client.Object)
		bare := fmt.Sprintf(`{"metadata":{"labels":{%q:null,%q:null},"annotations":null,"ownerReferences":null}}`, v1alpha1.LabelTenant, v1alpha1.LabelCloudSpace)
		g.Expect(operator.Patch(t.Context(), object, client.RawPatch(types.MergePatchType, []byte(bare)))).To(Succeed())
		g.Expect(object.GetLabels()).NotTo(HaveKey(v1alpha1.LabelTenant))
	}
	since := time.Now()
	for i, object := range objects {
		g.Eventually(func(g Gomega) {
			g.Expect(h.Get(t.Context(), client.ObjectKeyFromObject(object), object)).To(Succeed())
			g.Expect(object.GetLabels()).To(Equal(before[i].GetLabels()))
			g.Expect(object.GetAnnotations()).To(Equal(before[i].GetAnnotations()))
		}, time.Until(since.Add(comeback)), interval).Should(Succeed(), "%T %s", object, object.GetName())
		g.Expect(object.GetUID()).To(Equal(before[i].GetUID()))
		g.Expect(bodyOf(g, object)).To(Equal(bodyOf(g, before[i])), "%T %s", object, object.GetName())
	}
}

// bodyOf is an object without its metadata and status.
func bodyOf(g Gomega, object client.Object) map[string]any {
	body, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	g.Expect(err).NotTo(HaveOccurred())
	delete(body, "metadata")
	delete(body, "status")
	return body
}

// ofStaging is some of each kind that a CloudSpace is made of on the host cluster.
func ofStaging() []client.Object {
	in := func(namespace, name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: name}
	}
	const namespace, name = "vcluster-alice-default--staging", "alice-default--staging"
	return []client.Object{
		&corev1.ResourceQuota{ObjectMeta: in(namespace, "cloudspace")},
		&corev1.ResourceQuota{ObjectMeta: in(namespace, "cloudspace-control-plane")},
		&corev1.ResourceQuota{ObjectMeta: in(namespace, "cloudspace-workload")},
		&corev1.LimitRange{ObjectMeta: in(namespace, "cloudspace")},
		&networkingv1.NetworkPolicy{ObjectMeta: in(namespace, "cloudspace")},
		&networkingv1.NetworkPolicy{ObjectMeta: in(namespace, "cloudspace-control-plane")},
		&rbacv1.RoleBinding{ObjectMeta: in(namespace, "tenant-controller")},
		&appsv1.Deployment{ObjectMeta: in(namespace, name)},
		&appsv1.StatefulSet{ObjectMeta: in(namespace, name+"-etcd")},
		&corev1.Service{ObjectMeta: in(namespace, name+"-etcd")},
		&rbacv1.Role{ObjectMeta: in(namespace, "vc-"+name)},
		&rbacv1.ClusterRoleBinding{ObjectMeta: in("", "vc-"+name+"-v-"+namespace)},
	}
}
