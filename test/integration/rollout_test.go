// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	"github.com/onsi/gomega"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Three CloudSpaces are asked to grow at once, and one after the other does: the others work on as they are.
func TestControlPlanesAreChangedOneAtATime(t *testing.T) {
	t.Parallel()
	ids := []string{"roll-a", "roll-b", "roll-c"}
	before := map[string]string{}
	for _, id := range ids {
		create(t, tenant(id))
	}
	for _, id := range ids {
		reach(t, tenant(id), "Ready")
		before[id] = valuesOf(t, id)
		theStandIn.behave("vcluster-"+id, behaviour{hang: true})
	}
	for _, id := range ids {
		merge(t, tenant(id), `{"spec":{"defaultCloudSpace":{"template":{"spec":{"controlPlane":{"size":"Medium"},"resources":{"cpu":"4","memory":"8Gi"}}}}}}`)
	}
	for left := ids; len(left) > 0; {
		var next string
		eventually(t, func(g gomega.Gomega) {
			rolling := rollingOf(t, g, left)
			g.Expect(rolling).To(gomega.HaveLen(1), "those whose control plane is being changed")
			next = rolling[0]
			for _, id := range left {
				if id != next {
					waitsForItsTurn(t, g, id)
				}
			}
		})
		var waiting []string
		for _, id := range left {
			if id != next {
				waiting = append(waiting, id)
				if valuesOf(t, id) != before[id] {
					t.Errorf("the control plane of %s is changed while that of %s is", id, next)
				}
			}
		}
		theStandIn.behave("vcluster-"+next, behaviour{})
		eventually(t, func(g gomega.Gomega) {
			done := get(t, cloudSpace(next, "default"))
			g.Expect(apimeta.IsStatusConditionTrue(done.Status.Conditions, "UpToDate")).To(gomega.BeTrue())
			g.Expect(apimeta.IsStatusConditionTrue(done.Status.Conditions, "Ready")).To(gomega.BeTrue())
			g.Expect(done.Status.Phase).To(gomega.BeEquivalentTo("Active"))
		})
		left = waiting
	}
	for _, id := range ids {
		remove(t, tenant(id))
	}
}

// rollingOf are the CloudSpaces that have their turn.
func rollingOf(t *testing.T, g gomega.Gomega, ids []string) (rolling []string) {
	t.Helper()
	for _, id := range ids {
		release := &helmv2.HelmRelease{}
		g.Expect(api.Get(t.Context(), client.ObjectKey{Namespace: systemNamespace, Name: id}, release)).To(gomega.Succeed())
		if release.Annotations["tenancy.kubeopera.io/rolling"] != "" {
			rolling = append(rolling, id)
		}
	}
	return rolling
}

func waitsForItsTurn(t *testing.T, g gomega.Gomega, id string) {
	t.Helper()
	object := cloudSpace(id, "default")
	g.Expect(api.Get(t.Context(), client.ObjectKeyFromObject(object), object)).To(gomega.Succeed())
	waits := apimeta.FindStatusCondition(object.Status.Conditions, "UpToDate")
	g.Expect(waits).NotTo(gomega.BeNil())
	g.Expect(waits.Reason).To(gomega.Equal("WaitingForTurn"), fmt.Sprintf("%s: %+v", id, waits))
	g.Expect(apimeta.IsStatusConditionTrue(object.Status.Conditions, "ControlPlaneReady")).To(gomega.BeTrue())
}

func valuesOf(t *testing.T, id string) string {
	t.Helper()
	return string(get(t, &helmv2.HelmRelease{ObjectMeta: named(systemNamespace, id)}).Spec.Values.Raw)
}

// What cannot be is refused while the control plane works on as it is, and its phase stays.
func TestAVersionThatCannotBeLeavesWhatRuns(t *testing.T) {
	t.Parallel()
	const id = "roll-back"
	reach(t, create(t, tenant(id)), "Ready")
	before := valuesOf(t, id)
	merge(t, tenant(id), `{"spec":{"defaultCloudSpace":{"template":{"spec":{"kubernetesVersion":"v1.35.0"}}}}}`)
	says(t, cloudSpace(id, "default"), "UpToDate False UnsupportedVersion", "Kubernetes v1.35.0 is not offered; offered are v1.36.0")
	says(t, tenant(id), "Ready False Degraded", "Kubernetes v1.35.0 is not offered; offered are v1.36.0")
	object := get(t, cloudSpace(id, "default"))
	if object.Status.Phase != "Active" || !apimeta.IsStatusConditionTrue(object.Status.Conditions, "ControlPlaneReady") || valuesOf(t, id) != before {
		t.Errorf("the control plane did not work on as it was: %+v", object.Status)
	}
	merge(t, tenant(id), `{"spec":{"defaultCloudSpace":{"template":{"spec":{"kubernetesVersion":null}}}}}`)
	eventually(t, func(g gomega.Gomega) {
		g.Expect(apimeta.IsStatusConditionTrue(get(t, tenant(id)).Status.Conditions, "Ready")).To(gomega.BeTrue())
	})
	remove(t, tenant(id))
}
