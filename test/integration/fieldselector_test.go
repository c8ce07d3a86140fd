// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"testing"

	"github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
)

// CloudSpaces are listed and watched by their phase, as by kubectl get --field-selector: in a watch, one that enters the phase is added, and
// one that leaves it is deleted.
func TestCloudSpacesAreSelectedByPhase(t *testing.T) {
	t.Parallel()
	const id = "by-phase"
	reach(t, create(t, tenant(id)), "Ready")
	in := client.InNamespace("tenant-" + id)
	failed := client.MatchingFields{"status.phase": "Failed"}
	events, err := api.Watch(t.Context(), &v1alpha1.CloudSpaceList{}, in, failed)
	if err != nil {
		t.Fatal(err)
	}
	defer events.Stop()

	small := create(t, cloudSpace(id, "small", asking("1")))
	comes(t, events, watch.Added, "small")
	reach(t, small, "Failed")
	for phase, want := range map[string][]string{"Failed": {"small"}, "Active": {"default"}, "Suspended": nil} {
		list := &v1alpha1.CloudSpaceList{}
		if err := api.List(t.Context(), list, in, client.MatchingFields{"status.phase": phase}); err != nil {
			t.Fatal(err)
		}
		var got []string
		for i := range list.Items {
			got = append(got, list.Items[i].Name)
		}
		gomega.NewWithT(t).Expect(got).To(gomega.Equal(want), phase)
	}

	merge(t, small, `{"spec":{"resources":{"cpu":"2"}}}`)
	comes(t, events, watch.Deleted, "small")
	reach(t, small, "Active")

	if err := api.List(t.Context(), &v1alpha1.CloudSpaceList{}, in, client.MatchingFields{"status.reason": "x"}); !apierrors.IsBadRequest(err) {
		t.Errorf("a field that is not offered: got %v, want it refused", err)
	}
}

// comes waits for an event of a watch about a CloudSpace, and for no other CloudSpace meanwhile.
func comes(t *testing.T, events watch.Interface, kind watch.EventType, name string) {
	t.Helper()
	eventually(t, func(g gomega.Gomega) {
		var e watch.Event
		g.Expect(events.ResultChan()).To(gomega.Receive(&e))
		space, ok := e.Object.(*v1alpha1.CloudSpace)
		if !ok || space.Name != name {
			gomega.StopTrying("an event about something else").Attach("event", e).Now()
		}
		g.Expect(e.Type).To(gomega.Equal(kind))
	})
}
