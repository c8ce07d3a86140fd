// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	"github.com/google/go-cmp/cmp"
	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
)

// versionsOf are the resource versions of all that stands of a tenant.
func versionsOf(t *testing.T, id string) map[string]string {
	t.Helper()
	versions := map[string]string{}
	for _, object := range objectsOf(t, id) {
		versions[kindOf(object)+" "+object.GetNamespace()+"/"+object.GetName()] = object.GetResourceVersion()
	}
	return versions
}

// sameChildren compares versions, but for those of the Tenant and its default CloudSpace.
func sameChildren(t *testing.T, id string, before, after map[string]string) {
	t.Helper()
	// Ledger and number of CloudSpaces are told anew when one comes or goes.
	counts := []string{"TenantQuota /" + id, "ResourceQuota tenant-" + id + "/cloudspace"}
	for _, told := range append(counts, "Tenant /"+id, "CloudSpace tenant-"+id+"/default") {
		delete(before, told)
		delete(after, told)
	}
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("objects with their versions (-before +after):\n%s", diff)
	}
}

// asksFluxAgain waits until an operator that has just begun has gone through all steps of the tenant's default CloudSpace: the last
// is to ask about Flux, which is done once.
func asksFluxAgain(t *testing.T, id string, before int) {
	t.Helper()
	eventually(t, func(g gomega.Gomega) { g.Expect(flux.times("cloudspace-" + id)).To(gomega.BeNumerically(">", before)) })
}

// A new operator that finds everything as it should be writes nothing: what an upgrade of the operator does not change, it does not
// touch. What was altered while no operator ran is put right.
func TestANewOperatorTouchesOnlyWhatIsWrong(t *testing.T) {
	t.Parallel()
	const id = ofFaults + "upgrade"
	first := startProcess(t, &process{id: id})
	object := reach(t, create(t, tenant(id)), "Ready")
	first.end(t)
	altered := []client.Object{
		&rbacv1.RoleBinding{ObjectMeta: named("tenant-"+id, "cloudspace-viewer")}, &corev1.LimitRange{ObjectMeta: named("vcluster-"+id, "cloudspace")},
	}
	for _, gone := range altered {
		if err := api.Delete(t.Context(), gone); err != nil {
			t.Fatal(err)
		}
	}
	before := versionsOf(t, id)
	asked := flux.times("cloudspace-" + id)
	second := startProcess(t, &process{id: id})
	asksFluxAgain(t, id, asked)
	for _, gone := range altered {
		eventually(t, func(g gomega.Gomega) {
			g.Expect(api.Get(t.Context(), client.ObjectKeyFromObject(gone), gone)).To(gomega.Succeed())
		})
		before[kindOf(gone)+" "+gone.GetNamespace()+"/"+gone.GetName()] = gone.GetResourceVersion()
	}
	if diff := cmp.Diff(before, versionsOf(t, id)); diff != "" {
		t.Errorf("objects with their versions (-before +after):\n%s", diff)
	}
	// Each is made after a look at what it is for.
	if made := moments(id, second.calls.since(0)); len(made) != 2*len(altered) {
		t.Errorf("the new operator made %v", made)
	}
	remove(t, object)
}

// After the host's etcd was restored from a snapshot, statuses speak of the past and objects are missing. The operator goes on from
// what stands: whatever an earlier status says, nothing is deleted, and what is missing is made.
func TestARestoredPastIsMadeGood(t *testing.T) {
	t.Parallel()
	const id = ofFaults + "restored"
	host := "vcluster-" + id
	first := startProcess(t, &process{id: id})
	goUp(t, id)
	object := reach(t, tenant(id), "Ready")
	first.end(t)
	missing := []client.Object{
		&corev1.ResourceQuota{ObjectMeta: named(host, "cloudspace")}, &helmv2.HelmRelease{ObjectMeta: named(systemNamespace, id+"-flux")},
		secret(systemNamespace, "cloudspace-"+id+"-kubeconfig"), secret(systemNamespace, "tenant-"+id+"-kubeconfig"),
		&rbacv1.RoleBinding{ObjectMeta: named("tenant-"+id, "cloudspace-owner")},
	}
	past := statuses.versions(get(t, cloudSpace(id, "default")))
	for i, version := range past {
		space := get(t, cloudSpace(id, "default"))
		space.Status = version.(*v1alpha1.CloudSpace).Status
		if err := api.Status().Update(t.Context(), space); err != nil {
			t.Fatal(err)
		}
		remove(t, fresh(missing[i%len(missing)]))
		p := startProcess(t, &process{id: id})
		eventually(t, func(g gomega.Gomega) { g.Expect(inventoryOf(t, id)).To(gomega.Equal(undisturbed(t).inventory)) })
		says(t, space, "Ready True Provisioned", "")
		says(t, object, "Ready True Provisioned", "")
		for _, m := range moments(id, p.calls.since(0)) {
			if m.verb == "delete" {
				t.Errorf("from version %d on: %v", i, m)
			}
		}
		p.end(t)
	}
	startProcess(t, &process{id: id})
	remove(t, object)
}

// A CloudSpace that a restore has lost, or whose finalizer somebody took off, leaves what was made for it. The one that is made in its
// place takes nothing of it over, and only the copy of the kubeconfig that nobody can use any more is deleted.
func TestWhatALostCloudSpaceLeavesIsNotTouched(t *testing.T) {
	t.Parallel()
	const id = ofFaults + "lost"
	first := startProcess(t, &process{id: id})
	object := reach(t, create(t, tenant(id)), "Ready")
	first.end(t)
	before := versionsOf(t, id)
	space := cloudSpace(id, "default")
	merge(t, space, `{"metadata":{"finalizers":null}}`)
	remove(t, space)
	second := startProcess(t, &process{id: id})
	says(t, cloudSpace(id, "default"), "QuotaReserved False QuotaExhausted", "waiting for namespace vcluster-"+id+" to go")
	// The Tenant's copy of the kubeconfig opened the one that was lost: it goes.
	gone(t, secret(systemNamespace, "tenant-"+id+"-kubeconfig"))
	delete(before, "Secret kubeopera-system/tenant-"+id+"-kubeconfig")
	sameChildren(t, id, before, versionsOf(t, id))
	for _, m := range moments(id, second.calls.since(0)) {
		if (m.verb == "delete" || m.verb == "update") && m.name != "tenant-ID-kubeconfig" {
			t.Errorf("it asked for %v", m)
		}
	}
	remove(t, object)
}
