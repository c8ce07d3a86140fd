// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
	"github.com/tantilium/cloud-runner/apiserver/projection"
)

// steps are how long a history is.
const steps = 200

// Whatever happens, and whichever replica answers, a client ends with what is stored of its tenant, as the view shows it, and never held
// anything else.
func TestAClientEndsWithWhatIsStored(t *testing.T) {
	for _, seed := range []uint64{1, 2, uint64(time.Now().UnixNano())} {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			h := newHistory(t, seed)
			all, namespaced := h.follows(t, ""), h.follows(t, "tenant-"+h.own)
			for range steps {
				h.step(t)
				if h.random.IntN(20) == 0 {
					h.let(t, true)
					h.caughtUp(t, all, namespaced)
				}
			}
			front.lead(replicas[0].address, replicas[1].address)
			h.let(t, true)
			h.caughtUp(t, all, namespaced)
			for _, store := range []*kept{all, namespaced} {
				if held := store.foreign.Load(); held != 0 {
					t.Errorf("it held %d objects of others", held)
				}
			}
		})
	}
}

// history is what happens to two tenants that have CloudSpaces of the same names.
type history struct {
	random     *rand.Rand
	own, other string
	alice      person
}

func newHistory(t *testing.T, seed uint64) *history {
	t.Helper()
	h := &history{
		random: rand.New(rand.NewPCG(seed, 0)), own: fmt.Sprintf("own-%x", seed), other: fmt.Sprintf("other-%x", seed),
	}
	newTenant(t, h.own, member("histories-alice", tenancyv1alpha1.MemberViewer))
	newTenant(t, h.other, member("histories-alice", tenancyv1alpha1.MemberViewer))
	h.alice = known(t, customer("histories-alice", h.own))
	return h
}

// step does one thing at random.
func (h *history) step(t *testing.T) {
	t.Helper()
	o := &tenancyv1alpha1.CloudSpace{ObjectMeta: metav1.ObjectMeta{
		Name: fmt.Sprintf("space-%d", h.random.IntN(5)), Namespace: "tenant-" + []string{h.own, h.other}[h.random.IntN(2)],
	}}
	there := admin.Get(t.Context(), client.ObjectKeyFromObject(o), o) == nil
	var err error
	switch chance := h.random.IntN(20); {
	case chance == 0:
		front.lead(replicas[h.random.IntN(2)].address)
	case chance == 1:
		front.lead(replicas[0].address, replicas[1].address)
	case chance == 2:
		h.let(t, h.random.IntN(2) == 0)
	case !there:
		err = admin.Create(t.Context(), o)
	case chance < 8:
		err = admin.Delete(t.Context(), o)
	case chance < 14:
		o.Spec.DisplayName = strconv.Itoa(h.random.Int())
		err = admin.Update(t.Context(), o)
	default:
		o.Status.Phase = []tenancyv1alpha1.CloudSpacePhase{tenancyv1alpha1.CloudSpaceActive, tenancyv1alpha1.CloudSpaceFailed}[h.random.IntN(2)]
		o.Status.HostNamespace = "vcluster-canary"
		err = admin.Status().Update(t.Context(), o)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// let makes Alice a member of her tenant, or of none.
func (h *history) let(t *testing.T, in bool) {
	t.Helper()
	tenant := &tenancyv1alpha1.Tenant{}
	if err := admin.Get(t.Context(), client.ObjectKey{Name: h.own}, tenant); err != nil {
		t.Fatal(err)
	}
	tenant.Spec.Members = nil
	if in {
		tenant.Spec.Members = []tenancyv1alpha1.Member{member("histories-alice", tenancyv1alpha1.MemberViewer)}
	}
	if err := admin.Update(t.Context(), tenant); err != nil {
		t.Fatal(err)
	}
}

// follows keeps what Alice sees in a namespace, or in all, as informers do; only that it does not wait long after an error.
func (h *history) follows(t *testing.T, namespace string) *kept {
	t.Helper()
	sees := h.alice.sees(t, cloudSpaces).Namespace(namespace)
	store := &kept{Store: cache.NewStore(cache.MetaNamespaceKeyFunc), namespace: "tenant-" + h.own}
	reflector := cache.NewReflectorWithOptions(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return sees.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return sees.Watch(ctx, options)
		},
	}, &unstructured.Unstructured{}, store, cache.ReflectorOptions{})
	go wait.UntilWithContext(t.Context(), func(ctx context.Context) { _ = reflector.ListAndWatchWithContext(ctx) }, 10*time.Millisecond)
	return store
}

// caughtUp waits until stores have what is stored.
func (h *history) caughtUp(t *testing.T, stores ...*kept) {
	t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(tenancyv1alpha1.SchemeGroupVersion.WithKind("CloudSpaceList"))
	if err := admin.List(t.Context(), list, client.InNamespace("tenant-"+h.own)); err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		projection.CloudSpace(&list.Items[i])
	}
	eventually(t, func(g gomega.Gomega) {
		for _, store := range stores {
			g.Expect(store.ListKeys()).To(gomega.HaveLen(len(list.Items)))
			for i := range list.Items {
				got, found, err := store.Get(&list.Items[i])
				g.Expect(err).NotTo(gomega.HaveOccurred())
				g.Expect(found).To(gomega.BeTrue())
				g.Expect(reflect.DeepEqual(got, &list.Items[i])).To(gomega.BeTrue(), "%v\n%v", got, &list.Items[i])
			}
		}
	})
}

// kept is a store that counts what it is given of other namespaces.
type kept struct {
	cache.Store
	namespace string
	foreign   atomic.Int64
}

func (k *kept) look(objects ...any) {
	for _, each := range objects {
		if o, ok := each.(*unstructured.Unstructured); !ok || o.GetNamespace() != k.namespace {
			k.foreign.Add(1)
		}
	}
}

// Add keeps a new object.
func (k *kept) Add(o any) error {
	k.look(o)
	return k.Store.Add(o)
}

// Update keeps a changed object.
func (k *kept) Update(o any) error {
	k.look(o)
	return k.Store.Update(o)
}

// Delete forgets an object.
func (k *kept) Delete(o any) error {
	k.look(o)
	return k.Store.Delete(o)
}

// Replace keeps what was listed.
func (k *kept) Replace(objects []any, version string) error {
	k.look(objects...)
	return k.Store.Replace(objects, version)
}
