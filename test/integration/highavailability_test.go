// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
)

func withHighAvailability(o *v1alpha1.Tenant) {
	spec := &o.Spec.DefaultCloudSpace.Template.Spec
	spec.ControlPlane.HighAvailability = true
	spec.Resources.CPU = resource.MustParse("3")
}

func TestAHighlyAvailableControlPlaneGoesOnWithoutSomeMembers(t *testing.T) {
	t.Parallel()
	const id = "many-members"
	object := reach(t, create(t, tenant(id, withHighAvailability)), "Ready")
	space := cloudSpace(id, "default")
	lose := func(part client.Object, status string) {
		if err := api.Status().Patch(t.Context(), part, client.RawPatch("application/merge-patch+json", []byte(status))); err != nil {
			t.Fatal(err)
		}
	}
	server, etcd := get(t, deploymentOf(id)), get(t, &appsv1.StatefulSet{ObjectMeta: named("vcluster-"+id, id+"-etcd")})
	if *server.Spec.Replicas != 2 || *etcd.Spec.Replicas != 3 {
		t.Errorf("there are %d API servers and %d members of etcd", *server.Spec.Replicas, *etcd.Spec.Replicas)
	}
	lose(server, `{"status":{"readyReplicas":1,"availableReplicas":1}}`)
	says(t, space, "ControlPlaneReady True RedundancyLost", "1 of 2 API servers and 3 of 3 members of etcd run")
	lose(etcd, `{"status":{"readyReplicas":2}}`)
	says(t, space, "ControlPlaneReady True RedundancyLost", "1 of 2 API servers and 2 of 3 members of etcd run")
	says(t, object, "Ready True Provisioned", "")
	lose(etcd, `{"status":{"readyReplicas":1}}`)
	says(t, object, "Ready False Degraded", "waiting for etcd of the control plane")
	lose(etcd, `{"status":{"readyReplicas":3}}`)
	lose(server, `{"status":{"readyReplicas":2,"availableReplicas":2}}`)
	says(t, space, "ControlPlaneReady True Succeeded", "")

	t.Run("the disruption budget of etcd comes back", func(t *testing.T) {
		budget := get(t, &policyv1.PodDisruptionBudget{ObjectMeta: named("vcluster-"+id, "cloudspace-etcd")})
		want := essence(t, budget)
		merge(t, budget, `{"spec":{"maxUnavailable":3}}`)
		eventually(t, func(g gomega.Gomega) {
			g.Expect(cmp.Diff(want, essence(t, get(t, budget)))).To(gomega.BeEmpty(), "-want +got")
		})
	})
}

func TestAHighlyAvailableControlPlaneNeedsRoom(t *testing.T) {
	t.Parallel()
	object := create(t, tenant("many-in-little", withHighAvailability, func(o *v1alpha1.Tenant) {
		o.Spec.DefaultCloudSpace.Template.Spec.Resources.CPU = resource.MustParse("2")
	}))
	says(t, object, "Stalled True ResourcesTooSmall", "resources must have at least 2484m CPU and 3648Mi memory")
}
