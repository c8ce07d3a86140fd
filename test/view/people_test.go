// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"context"
	"fmt"
	"testing"

	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
	viewv1alpha1 "github.com/tantilium/cloud-runner/apis/view/v1alpha1"
)

// Resources of the view.
var (
	cloudSpaces = viewv1alpha1.SchemeGroupVersion.WithResource("cloudspaces")
	accounts    = viewv1alpha1.SchemeGroupVersion.WithResource("accounts")
)

// person is somebody with an identity as config/authn makes it.
type person struct {
	rest.ImpersonationConfig
}

// customer is somebody with a token for a tenant.
func customer(name, tenant string) person {
	return person{rest.ImpersonationConfig{
		UserName: "kubeopera:" + name, Groups: []string{"kubeopera:customers", "kubeopera:tenant:" + tenant, "system:authenticated"},
		Extra: map[string][]string{"kubeopera.io/user-type": {"customer"}, "kubeopera.io/tenant-id": {tenant}},
	}}
}

// superAdmin is an administrator of the platform.
func superAdmin() person {
	return person{rest.ImpersonationConfig{
		UserName: "kubeopera:root", Groups: []string{"kubeopera:super-admins", "system:authenticated"},
		Extra: map[string][]string{"kubeopera.io/user-type": {"super_admin"}},
	}}
}

func (p person) config() *rest.Config {
	config := rest.CopyConfig(adminConfig)
	config.Impersonate = p.ImpersonationConfig
	config.UserAgent = "view-test/1"
	return config
}

// sees is a client for what the person asks of a resource.
func (p person) sees(t *testing.T, resource schema.GroupVersionResource) dynamic.NamespaceableResourceInterface {
	t.Helper()
	return dynamicClient(t, p).Resource(resource)
}

func dynamicClient(t *testing.T, p person) dynamic.Interface {
	t.Helper()
	dynamically, err := dynamic.NewForConfig(p.config())
	if err != nil {
		t.Fatal(err)
	}
	return dynamically
}

// newTenant makes a Tenant, its namespace and what the operator binds for its members.
func newTenant(t *testing.T, id string, members ...tenancyv1alpha1.Member) *tenancyv1alpha1.Tenant {
	t.Helper()
	return makeTenant(t, &tenancyv1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: id}, Spec: tenancyv1alpha1.TenantSpec{DisplayName: "Of " + id, Members: members}})
}

func makeTenant(t *testing.T, tenant *tenancyv1alpha1.Tenant) *tenancyv1alpha1.Tenant {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: "tenant-" + tenant.Name, Labels: map[string]string{tenancyv1alpha1.LabelTenant: tenant.Name},
	}}
	for _, o := range []client.Object{namespace, tenant} {
		if err := admin.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _ = client.IgnoreNotFound(admin.Delete(context.Background(), tenant)) })
	tenant.Status = tenancyv1alpha1.TenantStatus{Phase: "Ready", ObservedGeneration: 1, Namespace: namespace.Name, NamespaceUID: string(namespace.UID)}
	if err := admin.Status().Update(t.Context(), tenant); err != nil {
		t.Fatal(err)
	}
	for i, m := range tenant.Spec.Members {
		bind(t, namespace.Name, fmt.Sprintf("member-%d", i), m)
	}
	return tenant
}

func bind(t *testing.T, namespace, name string, m tenancyv1alpha1.Member) {
	t.Helper()
	subject := rbacv1.Subject{Kind: string(m.Kind), Name: m.Name, Namespace: m.Namespace}
	if m.Kind != tenancyv1alpha1.MemberServiceAccount {
		subject.APIGroup = rbacv1.GroupName
	}
	if err := admin.Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}, Subjects: []rbacv1.Subject{subject},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: map[tenancyv1alpha1.MemberRole]string{
			tenancyv1alpha1.MemberOwner: "cloudspace-owner", tenancyv1alpha1.MemberEditor: "cloudspace-editor", tenancyv1alpha1.MemberViewer: "cloudspace-viewer",
		}[m.Role]},
	}); err != nil {
		t.Fatal(err)
	}
}

func member(name string, role tenancyv1alpha1.MemberRole) tenancyv1alpha1.Member {
	return tenancyv1alpha1.Member{Kind: tenancyv1alpha1.MemberUser, Name: "kubeopera:" + name, Role: role}
}

// newCloudSpace makes a stored CloudSpace, as the operator would hold it.
func newCloudSpace(t *testing.T, tenant, name string) *tenancyv1alpha1.CloudSpace {
	t.Helper()
	return makeCloudSpace(t, &tenancyv1alpha1.CloudSpace{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "tenant-" + tenant}})
}

func makeCloudSpace(t *testing.T, o *tenancyv1alpha1.CloudSpace) *tenancyv1alpha1.CloudSpace {
	t.Helper()
	o.Finalizers, o.Annotations = []string{tenancyv1alpha1.FinalizerCloudSpace}, map[string]string{tenancyv1alpha1.AnnotationTemplate: "1"}
	if err := admin.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { remove(context.Background(), o) })
	return o
}

// remove deletes a stored CloudSpace, and lets it go.
func remove(ctx context.Context, o *tenancyv1alpha1.CloudSpace) {
	_ = admin.Patch(ctx, o, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`)))
	_ = admin.Delete(ctx, o)
}

// named is a CloudSpace of the view.
func named(tenant, name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(viewv1alpha1.SchemeGroupVersion.WithKind("CloudSpace"))
	o.SetNamespace("tenant-" + tenant)
	o.SetName(name)
	return o
}

// known waits until the view knows somebody as a member.
func known(t *testing.T, p person) person {
	t.Helper()
	eventually(t, func(g gomega.Gomega) {
		_, err := p.sees(t, cloudSpaces).List(t.Context(), metav1.ListOptions{})
		g.Expect(err).NotTo(gomega.HaveOccurred())
	})
	return p
}
