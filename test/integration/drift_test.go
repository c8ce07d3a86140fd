// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// hostObjects are all that is made for a tenant's default CloudSpace.
func hostObjects(id string) []client.Object {
	host := "vcluster-" + id
	return []client.Object{
		namespace(host),
		&rbacv1.RoleBinding{ObjectMeta: named(host, "tenant-controller")},
		&corev1.LimitRange{ObjectMeta: named(host, "cloudspace")},
		&corev1.ResourceQuota{ObjectMeta: named(host, "cloudspace")},
		networkPolicy(host, "cloudspace"),
		networkPolicy(host, "cloudspace-control-plane"),
		networkPolicy(host, "cloudspace-workloads"),
		secret(host, "cloudspace-pull-"+pullSecret),
		&helmv2.HelmRelease{ObjectMeta: named(systemNamespace, id)},
		&helmv2.HelmRelease{ObjectMeta: named(systemNamespace, id+"-flux")},
		secret(systemNamespace, "cloudspace-"+id+"-kubeconfig"),
	}
}

func networkPolicy(namespace, name string) *networkingv1.NetworkPolicy {
	return &networkingv1.NetworkPolicy{ObjectMeta: named(namespace, name)}
}

// What somebody alters or deletes by hand comes back as it was, but for what Kubernetes and Flux write themselves.
func TestDriftIsPutRight(t *testing.T) {
	t.Parallel()
	const id = "drift"
	host := "vcluster-" + id
	object := reach(t, create(t, tenant(id)), "Ready")
	tests := []struct {
		what   string
		object client.Object
		change string
		// delete takes the object away in place of a change.
		delete bool
	}{
		{"the quota raised", &corev1.ResourceQuota{ObjectMeta: named(host, "cloudspace")}, `{"spec":{"hard":{"requests.cpu":"64"}}}`, false},
		{"a resource taken out of the quota", &corev1.ResourceQuota{ObjectMeta: named(host, "cloudspace")}, `{"spec":{"hard":{"pods":null}}}`, false},
		{"the quota deleted", &corev1.ResourceQuota{ObjectMeta: named(host, "cloudspace")}, "", true},
		{"the limits altered", &corev1.LimitRange{ObjectMeta: named(host, "cloudspace")}, `{"spec":{"limits":[]}}`, false},
		{"the limits deleted", &corev1.LimitRange{ObjectMeta: named(host, "cloudspace")}, "", true},
		{"the isolation opened", networkPolicy(host, "cloudspace"), `{"spec":{"egress":[{}]}}`, false},
		{"the isolation for other pods", networkPolicy(host, "cloudspace"), `{"spec":{"podSelector":{"matchLabels":{"a":"b"}}}}`, false},
		{"the isolation deleted", networkPolicy(host, "cloudspace"), "", true},
		{"workloads let into private networks", networkPolicy(host, "cloudspace-workloads"), `{"spec":{"egress":[{"to":[{"ipBlock":{"cidr":"10.0.0.0/8"}}]}]}}`, false},
		{"the control plane cut off", networkPolicy(host, "cloudspace-control-plane"), `{"spec":{"ingress":null}}`, false},
		{"somebody let into the host namespace", &rbacv1.RoleBinding{ObjectMeta: named(host, "tenant-controller")}, `{"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"mallory"}]}`, false},
		{"the operator shut out of it", &rbacv1.RoleBinding{ObjectMeta: named(host, "tenant-controller")}, "", true},
		{"pod security taken off the host namespace", namespace(host), `{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"privileged"}}}`, false},
		{"a label of ours taken off", namespace(host), `{"metadata":{"labels":{"tenancy.kubeopera.io/cloudspace":null}}}`, false},
		{"the pull secret altered", secret(host, "cloudspace-pull-"+pullSecret), `{"data":{".dockerconfigjson":"e30="}}`, false},
		{"a label of the pull secret taken off", secret(host, "cloudspace-pull-"+pullSecret), `{"metadata":{"labels":{"tenancy.kubeopera.io/cloudspace":null}}}`, false},
		{"the pull secret deleted", secret(host, "cloudspace-pull-"+pullSecret), "", true},
		{"the values of the control plane altered", &helmv2.HelmRelease{ObjectMeta: named(systemNamespace, id)}, `{"spec":{"values":{"controlPlane":null}}}`, false},
		{"the control plane suspended", &helmv2.HelmRelease{ObjectMeta: named(systemNamespace, id)}, `{"spec":{"suspend":true}}`, false},
		{"the release of Flux deleted", &helmv2.HelmRelease{ObjectMeta: named(systemNamespace, id+"-flux")}, "", true},
		{"the kubeconfig altered", secret(systemNamespace, "cloudspace-"+id+"-kubeconfig"), `{"data":{"value":"ZXZpbA=="}}`, false},
		{"the kubeconfig deleted", secret(systemNamespace, "cloudspace-"+id+"-kubeconfig"), "", true},
		{"the tenant's kubeconfig altered", secret(systemNamespace, "tenant-"+id+"-kubeconfig"), `{"data":{"config":"ZXZpbA=="}}`, false},
		{"the tenant's kubeconfig deleted", secret(systemNamespace, "tenant-"+id+"-kubeconfig"), "", true},
		{"somebody made a viewer", &rbacv1.RoleBinding{ObjectMeta: named("tenant-"+id, "cloudspace-viewer")}, `{"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"mallory"}]}`, false},
		{"a role of members deleted", &rbacv1.RoleBinding{ObjectMeta: named("tenant-"+id, "cloudspace-owner")}, "", true},
	}
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			before := get(t, tt.object)
			want, uid := essence(t, before), before.GetUID()
			if tt.delete {
				if err := api.Delete(t.Context(), before.DeepCopyObject().(client.Object)); err != nil {
					t.Fatal(err)
				}
			} else {
				merge(t, before.DeepCopyObject().(client.Object), tt.change)
			}
			eventually(t, func(g gomega.Gomega) {
				after := before.DeepCopyObject().(client.Object)
				g.Expect(api.Get(t.Context(), client.ObjectKeyFromObject(before), after)).To(gomega.Succeed())
				g.Expect(cmp.Diff(want, essence(t, after))).To(gomega.BeEmpty(), "-want +got")
				if tt.delete {
					g.Expect(after.GetUID()).NotTo(gomega.Equal(uid))
				} else {
					g.Expect(after.GetUID()).To(gomega.Equal(uid))
				}
			})
		})
	}
	says(t, object, "Ready True Provisioned", "")
}

// The charts are shared: one that is altered or deleted comes back for all.
func TestSharedChartsArePutRight(t *testing.T) {
	reach(t, create(t, tenant("drift-charts")), "Ready")
	tests := []struct {
		what   string
		object client.Object
		change string
		delete bool
	}{
		{"a chart from elsewhere", &sourcev1.HelmRepository{ObjectMeta: named(systemNamespace, "vcluster")}, `{"spec":{"url":"https://evil.example.com"}}`, false},
		{"another version", &sourcev1.HelmChart{ObjectMeta: named(systemNamespace, "vcluster-0.36.1")}, `{"spec":{"version":"9.9.9"}}`, false},
		{"a repository deleted", &sourcev1.HelmRepository{ObjectMeta: named(systemNamespace, "cloudspace-flux")}, "", true},
		{"a chart deleted", &sourcev1.HelmChart{ObjectMeta: named(systemNamespace, "cloudspace-flux-0.1.0")}, "", true},
	}
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			before := get(t, tt.object)
			want, uid := essence(t, before), before.GetUID()
			if tt.delete {
				if err := api.Delete(t.Context(), before.DeepCopyObject().(client.Object)); err != nil {
					t.Fatal(err)
				}
			} else {
				merge(t, before.DeepCopyObject().(client.Object), tt.change)
			}
			eventually(t, func(g gomega.Gomega) {
				after := before.DeepCopyObject().(client.Object)
				g.Expect(api.Get(t.Context(), client.ObjectKeyFromObject(before), after)).To(gomega.Succeed())
				g.Expect(cmp.Diff(want, essence(t, after))).To(gomega.BeEmpty(), "-want +got")
				if tt.delete {
					g.Expect(after.GetUID()).NotTo(gomega.Equal(uid))
				} else {
					g.Expect(after.GetUID()).To(gomega.Equal(uid))
				}
			})
		})
	}
}

// An object of somebody else under a name of ours is refused and left alone, and when it goes the way is free.
func TestSomebodyElsesObjectIsLeftAlone(t *testing.T) {
	t.Parallel()
	release := func(name string) client.Object {
		object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
			"interval": "1h0m0s", "chartRef": map[string]any{"kind": "HelmChart", "name": "other"}, "suspend": true,
		}}}
		object.SetAPIVersion("helm.toolkit.fluxcd.io/v2")
		object.SetKind("HelmRelease")
		object.SetNamespace(systemNamespace)
		object.SetName(name)
		return object
	}
	data := func(name string) client.Object {
		object := secret(systemNamespace, name)
		object.Data = map[string][]byte{"value": []byte("theirs")}
		return object
	}
	tests := []struct {
		id, kind string
		foreign  func(id string) client.Object
		labelled bool
		words    string
		// ofTenant says that it is in the way of the Tenant, not of its CloudSpace.
		ofTenant bool
	}{
		{id: "foreign-host", kind: "NamespaceReady", foreign: func(id string) client.Object { return namespace("vcluster-" + id) }, words: "Namespace vcluster-foreign-host exists and was not made for this object"},
		{id: "foreign-marked", kind: "NamespaceReady", labelled: true, foreign: func(id string) client.Object { return namespace("vcluster-" + id) }, words: "Namespace vcluster-foreign-marked exists and was not made for this object"},
		{id: "foreign-release", kind: "ControlPlaneReady", foreign: release, words: "HelmRelease foreign-release exists and was not made for this object"},
		{id: "foreign-flux", kind: "FluxReady", foreign: func(id string) client.Object { return release(id + "-flux") }, words: "HelmRelease foreign-flux-flux exists and was not made for this object"},
		{id: "foreign-secret", kind: "KubeconfigReady", foreign: func(id string) client.Object { return data("cloudspace-" + id + "-kubeconfig") }, words: "Secret cloudspace-foreign-secret-kubeconfig exists and was not made for this object"},
		{id: "foreign-copy", kind: "KubeconfigReady", ofTenant: true, foreign: func(id string) client.Object { return data("tenant-" + id + "-kubeconfig") }, words: "Secret tenant-foreign-copy-kubeconfig exists and was not made for this object"},
		{id: "foreign-tenant", kind: "NamespaceReady", ofTenant: true, foreign: func(id string) client.Object { return namespace("tenant-" + id) }, words: "Namespace tenant-foreign-tenant exists and was not made for this object"},
		{id: "foreign-earlier", kind: "NamespaceReady", ofTenant: true, labelled: true, foreign: func(id string) client.Object { return namespace("tenant-" + id) }, words: "Namespace tenant-foreign-earlier exists and was not made for this object"},
	}
	for _, tt := range tests {
		t.Run(tt.id, func(t *testing.T) {
			t.Parallel()
			foreign := tt.foreign(tt.id)
			if tt.labelled {
				foreign.SetLabels(map[string]string{
					"tenancy.kubeopera.io/tenant": tt.id, "tenancy.kubeopera.io/cloudspace": "default", "tenancy.kubeopera.io/owner-uid": "somebody-else",
				})
			}
			create(t, foreign)
			before := get(t, foreign).DeepCopyObject().(client.Object)
			object := create(t, tenant(tt.id))
			var refused client.Object = object
			if !tt.ofTenant {
				refused = cloudSpace(tt.id, "default")
			}
			says(t, refused, tt.kind+" False NotOurs", tt.words)
			reach(t, object, "Failed")
			if diff := cmp.Diff(essence(t, before), essence(t, get(t, foreign))); diff != "" {
				t.Errorf("it was altered:\n%s", diff)
			}
			t.Run("deleting leaves it too", func(t *testing.T) {
				remove(t, object)
				after := get(t, foreign)
				if after.GetUID() != before.GetUID() || after.GetDeletionTimestamp() != nil {
					t.Error("it was deleted")
				}
			})
			t.Run("without it all goes well", func(t *testing.T) {
				remove(t, foreign)
				reach(t, create(t, tenant(tt.id)), "Ready")
			})
		})
	}
}

// essence is all of an object that a person could have altered: without what changes with each write, without status, and
// without what others put on it.
func essence(t *testing.T, object client.Object) map[string]any {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object.DeepCopyObject())
	if err != nil {
		t.Fatal(err)
	}
	kept := map[string]any{}
	for key, value := range content {
		if key != "metadata" && key != "status" && key != "kind" && key != "apiVersion" {
			kept[key] = value
		}
	}
	kept["labels"], kept["annotations"] = object.GetLabels(), object.GetAnnotations()
	return kept
}
