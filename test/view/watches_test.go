// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"strconv"
	"testing"
	"time"

	"github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"

	tenancyv1alpha1 "github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
)

// soon is how long an event may take on a busy machine.
const soon = 30 * time.Second

// next gives the next event of a watch.
func next(t *testing.T, events watch.Interface) watch.Event {
	t.Helper()
	select {
	case event, open := <-events.ResultChan():
		if !open {
			t.Fatal("the watch has ended")
		}
		return event
	case <-time.After(soon):
		t.Fatal("no event")
	}
	return watch.Event{}
}

// seen is an event in a word and a name.
func seen(event watch.Event) string {
	o, ok := event.Object.(*unstructured.Unstructured)
	if !ok {
		return string(event.Type)
	}
	return string(event.Type) + " " + o.GetName()
}

func TestAWatchShowsOnlyOwnChanges(t *testing.T) {
	t.Parallel()
	g := gomega.NewWithT(t)
	newTenant(t, "watch-a", member("watch-alice", tenancyv1alpha1.MemberViewer))
	newTenant(t, "watch-b")
	alice := known(t, customer("watch-alice", "watch-a"))
	list, err := alice.sees(t, cloudSpaces).List(t.Context(), metav1.ListOptions{})
	g.Expect(err).NotTo(gomega.HaveOccurred())

	events, err := alice.sees(t, cloudSpaces).Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.GetResourceVersion()})
	g.Expect(err).NotTo(gomega.HaveOccurred())
	defer events.Stop()
	newCloudSpace(t, "watch-b", "foreign")
	one := newCloudSpace(t, "watch-a", "one")
	g.Expect(seen(next(t, events))).To(gomega.Equal("ADDED one"))
	one.Spec.DisplayName = "One"
	g.Expect(admin.Update(t.Context(), one)).To(gomega.Succeed())
	g.Expect(seen(next(t, events))).To(gomega.Equal("MODIFIED one"))
	remove(t.Context(), one)
	for {
		event := next(t, events)
		if event.Type == watch.Modified {
			continue // the finalizer goes first
		}
		g.Expect(seen(event)).To(gomega.Equal("DELETED one"))
		break
	}

	again, err := alice.sees(t, cloudSpaces).Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.GetResourceVersion()})
	g.Expect(err).NotTo(gomega.HaveOccurred())
	defer again.Stop()
	g.Expect(seen(next(t, again))).To(gomega.Equal("ADDED one"), "a watch goes on where the client was, on any replica")
}

// What leaves a selector is deleted for who selects by it.
func TestWhatLeavesASelectorIsDeletedForTheClient(t *testing.T) {
	t.Parallel()
	newTenant(t, "leave", member("leave-alice", tenancyv1alpha1.MemberViewer))
	alice := known(t, customer("leave-alice", "leave"))
	one := newCloudSpace(t, "leave", "one")
	for name, selected := range map[string]metav1.ListOptions{
		"by label": {LabelSelector: "team=a"},
		"by state": {FieldSelector: "status.state=failed"},
	} {
		t.Run(name, func(t *testing.T) {
			g := gomega.NewWithT(t)
			events, err := alice.sees(t, cloudSpaces).Watch(t.Context(), selected)
			g.Expect(err).NotTo(gomega.HaveOccurred())
			defer events.Stop()
			setLabel(t, one, "a")
			setPhase(t, one, tenancyv1alpha1.CloudSpaceFailed)
			g.Expect(seen(next(t, events))).To(gomega.Equal("ADDED one"))
			setLabel(t, one, "b")
			setPhase(t, one, tenancyv1alpha1.CloudSpaceActive)
			for {
				event := next(t, events)
				if event.Type == watch.Modified {
					continue
				}
				g.Expect(seen(event)).To(gomega.Equal("DELETED one"))
				return
			}
		})
	}
}

func setLabel(t *testing.T, o *tenancyv1alpha1.CloudSpace, team string) {
	t.Helper()
	o.Labels = map[string]string{"team": team}
	if err := admin.Update(t.Context(), o); err != nil {
		t.Fatal(err)
	}
}

func setPhase(t *testing.T, o *tenancyv1alpha1.CloudSpace, phase tenancyv1alpha1.CloudSpacePhase) {
	t.Helper()
	o.Status.Phase = phase
	if err := admin.Status().Update(t.Context(), o); err != nil {
		t.Fatal(err)
	}
}

// ended waits until a watch ends with the answer that makes clients list anew.
func ended(t *testing.T, events watch.Interface) {
	t.Helper()
	for {
		event := next(t, events)
		if event.Type == watch.Error {
			if err := apierrors.FromObject(event.Object); !apierrors.IsResourceExpired(err) {
				t.Fatalf("ended with %v", err)
			}
			return
		}
	}
}

func TestAWatchEndsWithTheMembership(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*testing.T, *tenancyv1alpha1.Tenant){
		"removed from the members": func(t *testing.T, tenant *tenancyv1alpha1.Tenant) {
			t.Helper()
			tenant.Spec.Members = nil
			if err := admin.Update(t.Context(), tenant); err != nil {
				t.Fatal(err)
			}
		},
		"the Tenant is gone": func(t *testing.T, tenant *tenancyv1alpha1.Tenant) {
			t.Helper()
			if err := admin.Delete(t.Context(), tenant); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := gomega.NewWithT(t)
			id := map[bool]string{true: "ends-member", false: "ends-tenant"}[name == "removed from the members"]
			tenant := newTenant(t, id, member("ends-alice", tenancyv1alpha1.MemberOwner))
			alice := known(t, customer("ends-alice", id))
			events, err := alice.sees(t, cloudSpaces).Watch(t.Context(), metav1.ListOptions{})
			g.Expect(err).NotTo(gomega.HaveOccurred())
			defer events.Stop()
			end(t, tenant)
			ended(t, events)
			eventually(t, func(g gomega.Gomega) {
				_, err := alice.sees(t, cloudSpaces).List(t.Context(), metav1.ListOptions{})
				g.Expect(apierrors.IsForbidden(err)).To(gomega.BeTrue(), "%v", err)
			})
		})
	}
}

func TestAWatchEndsWithTheToken(t *testing.T) {
	t.Parallel()
	g := gomega.NewWithT(t)
	newTenant(t, "expires", member("expires-alice", tenancyv1alpha1.MemberOwner))
	alice := known(t, customer("expires-alice", "expires"))
	alice.Extra["kubeopera.io/token-expires"] = []string{strconv.FormatInt(time.Now().Add(3*time.Second).Unix(), 10)}
	events, err := alice.sees(t, cloudSpaces).Watch(t.Context(), metav1.ListOptions{})
	g.Expect(err).NotTo(gomega.HaveOccurred())
	defer events.Stop()
	ended(t, events)
}

func TestInformersOfTheFieldSync(t *testing.T) {
	t.Parallel()
	newTenant(t, "informers", member("informers-alice", tenancyv1alpha1.MemberViewer))
	newCloudSpace(t, "informers", "one")
	alice := known(t, customer("informers-alice", "informers"))
	for name, namespace := range map[string]string{"of all": "", "of the namespace": "tenant-informers"} {
		t.Run(name, func(t *testing.T) {
			informer := dynamicinformer.NewFilteredDynamicInformer(dynamicClient(t, alice), cloudSpaces, namespace, 0, nil, nil).Informer()
			go informer.RunWithContext(t.Context())
			if !cache.WaitForCacheSync(t.Context().Done(), informer.HasSynced) {
				t.Fatal("not synced")
			}
			if keys := informer.GetStore().ListKeys(); len(keys) != 1 || keys[0] != "tenant-informers/one" {
				t.Errorf("it has %v", keys)
			}
		})
	}
}

func TestAWatchBeginsWithWhatThereIs(t *testing.T) {
	t.Parallel()
	g := gomega.NewWithT(t)
	newTenant(t, "initial", member("initial-alice", tenancyv1alpha1.MemberViewer))
	newCloudSpace(t, "initial", "one")
	alice := known(t, customer("initial-alice", "initial"))
	events, err := alice.sees(t, cloudSpaces).Watch(t.Context(), metav1.ListOptions{
		SendInitialEvents: new(true), AllowWatchBookmarks: true, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
	})
	g.Expect(err).NotTo(gomega.HaveOccurred())
	defer events.Stop()
	g.Expect(seen(next(t, events))).To(gomega.Equal("ADDED one"))
	bookmark := next(t, events)
	g.Expect(bookmark.Type).To(gomega.Equal(watch.Bookmark))
	o, _ := bookmark.Object.(*unstructured.Unstructured)
	g.Expect(o.GetAnnotations()).To(gomega.HaveKeyWithValue(metav1.InitialEventsAnnotationKey, "true"))
	g.Expect(o.GetResourceVersion()).NotTo(gomega.BeEmpty())
}

func TestAVersionThatIsTooOldIsToldSo(t *testing.T) {
	t.Parallel()
	g := gomega.NewWithT(t)
	newTenant(t, "old", member("old-alice", tenancyv1alpha1.MemberViewer))
	alice := known(t, customer("old-alice", "old"))
	events, err := alice.sees(t, cloudSpaces).Watch(t.Context(), metav1.ListOptions{ResourceVersion: "1"})
	g.Expect(err).NotTo(gomega.HaveOccurred())
	defer events.Stop()
	ended(t, events)
}
