// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	"github.com/google/go-cmp/cmp"
	"github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
)

// leftovers names everything in the cluster that carries a tenant's id in its name or namespace.
func leftovers(t *testing.T, id string) []string {
	t.Helper()
	var found []string
	for _, object := range objectsOf(t, id) {
		found = append(found, kindOf(object)+" "+object.GetNamespace()+"/"+object.GetName())
	}
	return found
}

// objectsOf are all objects in the cluster that carry a tenant's id in their name or namespace.
func objectsOf(t *testing.T, id string) []client.Object {
	t.Helper()
	var found []client.Object
	for _, list := range []client.ObjectList{
		&v1alpha1.TenantList{}, &v1alpha1.CloudSpaceList{}, &v1alpha1.TenantQuotaList{}, &corev1.NamespaceList{}, &corev1.SecretList{}, &corev1.ResourceQuotaList{},
		&corev1.LimitRangeList{}, &rbacv1.RoleBindingList{}, &helmv2.HelmReleaseList{}, &appsv1.DeploymentList{}, &appsv1.StatefulSetList{},
		&corev1.ServiceList{}, &rbacv1.RoleList{}, &rbacv1.ClusterRoleList{}, &rbacv1.ClusterRoleBindingList{},
	} {
		if err := api.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		if err := meta.EachListItem(list, func(item runtime.Object) error {
			if object := item.(client.Object); strings.Contains(object.GetName(), id) || strings.Contains(object.GetNamespace(), id) {
				found = append(found, object)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	return found
}

// A Tenant can be deleted wherever its CloudSpace stands, and nothing is left of either.
func TestDeletingInEveryPhaseLeavesNothing(t *testing.T) {
	t.Parallel()
	tests := []struct {
		id        string
		stops     func(id string)
		condition string
	}{
		{id: "leave-quota", condition: "PoliciesApplied False WaitingForQuota", stops: func(id string) { theStandIn.behave("cloudspace.vcluster-"+id, behaviour{hang: true}) }},
		{id: "leave-install", condition: "ControlPlaneReady False Installing", stops: func(id string) { theStandIn.behave(id, behaviour{hang: true}) }},
		{id: "leave-failing", condition: "ControlPlaneReady False InstallFailed", stops: func(id string) { theStandIn.behave(id, behaviour{fail: "no"}) }},
		{id: "leave-starting", condition: "ControlPlaneReady False Starting", stops: func(id string) { theStandIn.behave("vcluster-"+id, behaviour{hang: true}) }},
		{id: "leave-waiting", condition: "KubeconfigReady False WaitingForKubeconfig", stops: func(id string) { theStandIn.behave("vcluster-"+id, behaviour{kubeconfig: "none"}) }},
		{id: "leave-flux", condition: "FluxReady False Installing", stops: func(id string) { theStandIn.behave(id+"-flux", behaviour{hang: true}) }},
		{id: "leave-inside", condition: "FluxReady False WaitingForFlux", stops: func(id string) { flux.set("cloudspace-"+id, "helm-controller") }},
		{id: "leave-active", condition: "FluxReady True Succeeded"},
	}
	for _, tt := range tests {
		t.Run(tt.id, func(t *testing.T) {
			t.Parallel()
			if tt.stops != nil {
				tt.stops(tt.id)
			}
			object := create(t, tenant(tt.id))
			says(t, cloudSpace(tt.id, "default"), tt.condition, "")
			remove(t, object)
			if found := leftovers(t, tt.id); len(found) > 0 {
				t.Errorf("left are %s", strings.Join(found, ", "))
			}
		})
	}
}

// Deleted while its first pass is under way: the caches know little yet of what is being made.
func TestDeletingDuringTheFirstPassLeavesNothing(t *testing.T) {
	t.Parallel()
	for i := range 5 {
		id := fmt.Sprintf("leave-early-%d", i)
		object := create(t, tenant(id))
		eventually(t, func(g gomega.Gomega) {
			g.Expect(get(t, object).Finalizers).To(gomega.ContainElement("tenancy.kubeopera.io/tenant"))
		})
		remove(t, object)
		if found := leftovers(t, id); len(found) > 0 {
			t.Errorf("left are %s", strings.Join(found, ", "))
		}
	}
}

func TestATenantWithTwoCloudSpacesIsDeletedWithBoth(t *testing.T) {
	t.Parallel()
	const id = "leave-two"
	object := reach(t, create(t, tenant(id)), "Ready")
	staging := reach(t, create(t, cloudSpace(id, "staging")), "Active")
	theStandIn.behave("vcluster-"+id+"--staging", behaviour{keep: true})
	if err := api.Delete(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	says(t, staging, "Ready False Deleting", "waiting for the host namespace")
	says(t, object, "Ready False Deleting", "staging among them")
	gone(t, cloudSpace(id, "default"))
	t.Run("the report stands to the end", func(t *testing.T) {
		want := []v1alpha1.DeletionStep{
			{Step: "ReleaseInner", Done: true},
			{Step: "ReleaseControlPlane", Done: true},
			{Step: "RemoveKubeconfig", Done: true},
			{Step: "RemoveNamespace", Message: "waiting for the host namespace"},
			{Step: "VerifyGone"},
		}
		if diff := cmp.Diff(want, get(t, staging).Status.Deletion); diff != "" {
			t.Errorf("report (-want +got):\n%s", diff)
		}
	})
	theStandIn.behave("vcluster-"+id+"--staging", behaviour{})
	gone(t, object)
	if found := leftovers(t, id); len(found) > 0 {
		t.Errorf("left are %s", strings.Join(found, ", "))
	}
}

// What is inside a CloudSpace that cannot be reached must not hold up its deletion for ever.
func TestAnInnerReleaseThatDoesNotEndIsLetGo(t *testing.T) {
	t.Parallel()
	const id = "leave-inner"
	object := reach(t, create(t, tenant(id)), "Ready")
	theStandIn.behave(id+"-flux", behaviour{keep: true})
	if err := api.Delete(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	says(t, cloudSpace(id, "default"), "Ready False Deleting", "waiting for release "+id+"-flux")
	if release := get(t, &helmv2.HelmRelease{ObjectMeta: named(systemNamespace, id)}); release.DeletionTimestamp != nil {
		t.Error("the control plane is taken down before what is inside")
	}
	gone(t, object)
	if found := leftovers(t, id); len(found) > 0 {
		t.Errorf("left are %s", strings.Join(found, ", "))
	}
}

// Without Flux's helm-controller nothing can be uninstalled. The host namespace goes all the same, in bounded time; the rest is waited
// for, and named, until Flux is back.
func TestWithoutFluxTheHostNamespaceGoesAndTheReleasesAreWaitedFor(t *testing.T) {
	t.Parallel()
	const id = "leave-fluxless"
	object := reach(t, create(t, tenant(id)), "Ready")
	theStandIn.behave(id, behaviour{dead: true})
	theStandIn.behave(id+"-flux", behaviour{dead: true})
	if err := api.Delete(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	gone(t, namespace("vcluster-"+id))
	gone(t, secret(systemNamespace, "cloudspace-"+id+"-kubeconfig"))
	says(t, cloudSpace(id, "default"), "Ready False Deleting", "waiting for release "+id+"-flux")
	eventually(t, func(g gomega.Gomega) {
		var open []string
		for _, s := range get(t, cloudSpace(id, "default")).Status.Deletion {
			if !s.Done {
				open = append(open, s.Step+": "+s.Message)
			}
		}
		g.Expect(open).To(gomega.Equal([]string{
			"ReleaseInner: waiting for release " + id + "-flux", "ReleaseControlPlane: waiting for the control plane",
			"VerifyGone: waiting for release " + id + "-flux",
		}))
	})
	theStandIn.behave(id, behaviour{})
	theStandIn.behave(id+"-flux", behaviour{})
	gone(t, object)
	if found := leftovers(t, id); len(found) > 0 {
		t.Errorf("left are %s", strings.Join(found, ", "))
	}
}

// Flux lets go of a suspended release without uninstalling it. What it made cluster-wide must not outlive it.
func TestASuspendedControlPlaneIsUninstalledAllTheSame(t *testing.T) {
	t.Parallel()
	const id = "leave-suspended"
	object := reach(t, create(t, tenant(id)), "Ready")
	theStandIn.behave(id+"-flux", behaviour{keep: true})
	if err := api.Delete(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	says(t, cloudSpace(id, "default"), "Ready False Deleting", "waiting for release "+id+"-flux")
	merge(t, &helmv2.HelmRelease{ObjectMeta: named(systemNamespace, id)}, `{"spec":{"suspend":true}}`)
	theStandIn.behave(id+"-flux", behaviour{})
	gone(t, object)
	if found := leftovers(t, id); len(found) > 0 {
		t.Errorf("left are %s", strings.Join(found, ", "))
	}
}

// A new one under the same name begins anew: it waits for the old one's namespace to go, and has other certificates.
func TestANewTenantOfTheSameNameBeginsAnew(t *testing.T) {
	t.Parallel()
	const id = "again"
	first := reach(t, create(t, tenant(id)), "Ready")
	before := get(t, secret(systemNamespace, "tenant-"+id+"-kubeconfig")).Data["value"]
	remove(t, first)
	second := reach(t, create(t, tenant(id)), "Ready")
	if after := get(t, secret(systemNamespace, "tenant-"+id+"-kubeconfig")).Data["value"]; bytes.Equal(after, before) {
		t.Error("it has the kubeconfig of the first one")
	}
	if get(t, second).Status.NamespaceUID == first.Status.NamespaceUID {
		t.Error("it has the namespace of the first one")
	}
}

// Deleting the default CloudSpace by itself makes its Tenant make it again.
func TestADeletedDefaultCloudSpaceComesBack(t *testing.T) {
	t.Parallel()
	const id = "comes-back"
	object := reach(t, create(t, tenant(id)), "Ready")
	first := get(t, cloudSpace(id, "default"))
	theStandIn.behave(id+"-flux", behaviour{hang: true})
	if err := api.Delete(t.Context(), first.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	t.Run("until then the Tenant has no kubeconfig", func(t *testing.T) {
		gone(t, secret(systemNamespace, "tenant-"+id+"-kubeconfig"))
		eventually(t, func(g gomega.Gomega) { g.Expect(get(t, object).Status.KubeconfigSecret).To(gomega.BeEmpty()) })
	})
	theStandIn.behave(id+"-flux", behaviour{})
	eventually(t, func(g gomega.Gomega) {
		second := cloudSpace(id, "default")
		g.Expect(api.Get(t.Context(), client.ObjectKeyFromObject(second), second)).To(gomega.Succeed())
		g.Expect(second.UID).NotTo(gomega.Equal(first.UID))
		g.Expect(string(second.Status.Phase)).To(gomega.Equal("Active"))
	})
	says(t, object, "Ready True Provisioned", "")
}
