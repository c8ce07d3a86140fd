// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	"github.com/google/go-cmp/cmp"
	"github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// chartObjects are what the chart of the control plane made, and how somebody could alter each.
func chartObjects(id string) map[string]struct {
	object client.Object
	change string
} {
	host, clusterWide := "vcluster-"+id, "vc-"+id+"-v-vcluster-"+id
	return map[string]struct {
		object client.Object
		change string
	}{
		"API server":          {&appsv1.Deployment{ObjectMeta: named(host, id)}, `{"spec":{"replicas":0}}`},
		"etcd":                {&appsv1.StatefulSet{ObjectMeta: named(host, id+"-etcd")}, `{"spec":{"replicas":0}}`},
		"service":             {&corev1.Service{ObjectMeta: named(host, id)}, `{"spec":{"selector":{"app":"mallory"}}}`},
		"service account":     {&corev1.ServiceAccount{ObjectMeta: named(host, "vc-"+id)}, `{"metadata":{"labels":{"tenancy.kubeopera.io/owner-uid":null}}}`},
		"rights":              {&rbacv1.Role{ObjectMeta: named(host, "vc-"+id)}, `{"rules":[]}`},
		"who has them":        {&rbacv1.RoleBinding{ObjectMeta: named(host, "vc-"+id)}, `{"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"mallory"}]}`},
		"cluster-wide rights": {&rbacv1.ClusterRole{ObjectMeta: named("", clusterWide)}, `{"rules":[]}`},
		"who has those":       {&rbacv1.ClusterRoleBinding{ObjectMeta: named("", clusterWide)}, `{"subjects":[]}`},
	}
}

// What the chart of a control plane made comes back within 30 s when somebody alters or removes it: Flux is asked to look, once for
// all that was done in one go.
func TestDriftOfTheControlPlaneIsPutRight(t *testing.T) {
	t.Parallel()
	for name, remove := range map[string]bool{"drift-altered": false, "drift-removed": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			object := reach(t, create(t, tenant(name)), "Ready")
			want := map[string]map[string]any{}
			parts := chartObjects(name)
			for what, part := range parts {
				want[what] = withoutAddress(essence(t, get(t, part.object)))
			}
			mark, began := calls.mark(), time.Now()
			for _, part := range parts {
				if remove {
					if err := api.Delete(t.Context(), part.object); err != nil {
						t.Fatal(err)
					}
					continue
				}
				merge(t, part.object, part.change)
			}
			eventually(t, func(g gomega.Gomega) {
				for what, part := range parts {
					g.Expect(api.Get(t.Context(), client.ObjectKeyFromObject(part.object), part.object)).To(gomega.Succeed(), what)
					g.Expect(cmp.Diff(want[what], withoutAddress(essence(t, part.object)))).To(gomega.BeEmpty(), "%s (-want +got)", what)
				}
			})
			if took := time.Since(began); took > 30*time.Second {
				t.Errorf("it took %s", took)
			}
			says(t, object, "Ready True Provisioned", "")
			if asked := patches(mark, "helmreleases", name); asked < 1 || asked > 3 {
				t.Errorf("Flux was asked %d times", asked)
			}
			settled(t, name)
		})
	}
}

// Flux looks at releases by itself, and people ask it to. When all is as it should be, that is no drift, and no outage.
func TestALookOfFluxIsNoDrift(t *testing.T) {
	t.Parallel()
	const id = "drift-none"
	object := reach(t, create(t, tenant(id)), "Ready")
	ready := get(t, object).Status.Conditions
	release := &helmv2.HelmRelease{ObjectMeta: named(systemNamespace, id)}
	mark := calls.mark()
	merge(t, release, `{"metadata":{"annotations":{"reconcile.fluxcd.io/requestedAt":"somebody"}}}`)
	eventually(t, func(g gomega.Gomega) {
		g.Expect(get(t, release).Status.LastHandledReconcileAt).To(gomega.Equal("somebody"))
	})
	settled(t, id)
	if asked := patches(mark, "helmreleases", id); asked != 0 {
		t.Errorf("Flux was asked %d times", asked)
	}
	if diff := cmp.Diff(ready, get(t, object).Status.Conditions); diff != "" {
		t.Errorf("conditions changed (-before +after):\n%s", diff)
	}
}

// withoutAddress leaves out what a Service that is made anew cannot have again.
func withoutAddress(essence map[string]any) map[string]any {
	if spec, ok := essence["spec"].(map[string]any); ok {
		delete(spec, "clusterIP")
		delete(spec, "clusterIPs")
	}
	return essence
}

// settled waits until status tells how the parts stood when Flux looked last: then nothing is to come.
func settled(t *testing.T, id string) {
	t.Helper()
	var looks []string
	eventually(t, func(g gomega.Gomega) {
		release := get(t, &helmv2.HelmRelease{ObjectMeta: named(systemNamespace, id)})
		g.Expect(release.Annotations["reconcile.fluxcd.io/requestedAt"]).To(gomega.Equal(release.Status.LastHandledReconcileAt))
		looks = append(looks, get(t, cloudSpace(id, "default")).Status.Drift.Look)
		g.Expect(len(looks)).To(gomega.BeNumerically(">", 10))
		g.Expect(looks[len(looks)-10]).To(gomega.Equal(looks[len(looks)-1]))
	})
}

// patches counts those of the operator to an object since a mark.
func patches(mark int, resource, name string) int {
	count := 0
	for _, c := range calls.since(mark) {
		if c.verb == "patch" && c.resource == resource && c.name == name {
			count++
		}
	}
	return count
}
