//go:build e2e

// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	toolswatch "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
	viewv1alpha1 "github.com/tantilium/cloud-runner/apis/view/v1alpha1"
	"github.com/tantilium/cloud-runner/apiserver/projection"
)

// What is stored, and what the view has of it.
var (
	storedCloudSpaces = v1alpha1.SchemeGroupVersion.WithResource("cloudspaces")
	viewOfCloudSpaces = viewv1alpha1.SchemeGroupVersion.WithResource("cloudspaces")
)

// kills is how many times a replica is killed.
const kills = 8

// viewReplicasKilled kills one of the view's replicas, and then the other, again and again, while CloudSpaces of two tenants are made, changed
// and deleted. Who watches is told all that happened, in order; informers end with what is stored; nobody sees anything of another tenant.
func (h *host) viewReplicasKilled(t *testing.T) {
	g := NewWithT(t)
	const own, other = "tenant-laura", "tenant-mike"
	h.createIdleTenant(t, ownedBy("laura", "laura"))
	h.createIdleTenant(t, ownedBy("mike", "mike"))
	laura := h.with(h.provider(t).token(t, map[string]any{"sub": "laura", "user_type": "customer", "tenant_id": "laura"}))
	// Nobody is to follow the Tenants' end.
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	began := h.stored(t, "").GetResourceVersion()
	happened := watched(ctx, t, h.config, storedCloudSpaces, began)
	toldToAll, toldToLaura := watched(ctx, t, h.config, viewOfCloudSpaces, began), watched(ctx, t, laura, viewOfCloudSpaces, began)
	followers := map[string]*follower{
		"an administrator's": informed(ctx, t, h.config, "", true), "an administrator's, listing first": informed(ctx, t, h.config, "", false),
		"laura's": informed(ctx, t, laura, own, true), "laura's, listing first": informed(ctx, t, laura, own, false),
	}

	random, killed := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0)), 0
	g.Eventually(func() int {
		h.changeOne(t, random, own, other)
		killed += h.killReadyReplica(t)
		return killed
	}, 3*time.Minute, interval/2).Should(Equal(kills))

	g.Eventually(func(g Gomega) {
		g.Expect(toldToAll.of("")).To(Equal(happened.of("")))
		g.Expect(toldToLaura.of("")).To(Equal(happened.of(own)))
	}, short, interval).Should(Succeed())
	for name, f := range followers {
		g.Eventually(func(g Gomega) {
			f.hasWhatIsStored(g, h.stored(t, f.namespace))
			f.toldOf(g, happened.of(f.namespace))
		}, short, interval).Should(Succeed(), name)
		t.Logf("%s informer began %v times, by a watch or a list", name, f.begun)
	}
	t.Logf("%d events, %d of them Laura's", len(happened.of("")), len(happened.of(own)))
	stop()
	h.removeTenants(t, "laura", "mike")
}

// stored is what is stored of a namespace, or of all, as the view shows it.
func (h *host) stored(t *testing.T, namespace string) *unstructured.UnstructuredList {
	t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(v1alpha1.SchemeGroupVersion.WithKind("CloudSpaceList"))
	NewWithT(t).Expect(h.WithWatch.List(t.Context(), list, client.InNamespace(namespace))).To(Succeed())
	for i := range list.Items {
		projection.CloudSpace(&list.Items[i])
	}
	return list
}

// changeOne does one thing at random to a CloudSpace in one of the namespaces. The operator does the rest.
func (h *host) changeOne(t *testing.T, random *rand.Rand, namespaces ...string) {
	t.Helper()
	o := &v1alpha1.CloudSpace{ObjectMeta: metav1.ObjectMeta{
		Name: fmt.Sprintf("space-%d", random.IntN(4)), Namespace: namespaces[random.IntN(len(namespaces))],
	}}
	patch := func(text string) error {
		return h.Patch(t.Context(), o, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, text, random.Int())))
	}
	err := h.Get(t.Context(), client.ObjectKeyFromObject(o), o)
	switch chance := random.IntN(4); {
	case apierrors.IsNotFound(err):
		o.Spec.Suspend = true
		err = h.Create(t.Context(), o)
	case err != nil:
	case chance == 0:
		err = h.Delete(t.Context(), o)
	case chance == 1:
		err = patch(`{"metadata":{"labels":{"team":"%d"}}}`)
	default:
		err = patch(`{"spec":{"displayName":"%d"}}`)
	}
	NewWithT(t).Expect(client.IgnoreNotFound(err)).To(Succeed())
}

// killReadyReplica kills the elder replica of the view at once, if both are ready, and gives how many it killed.
func (h *host) killReadyReplica(t *testing.T) int {
	t.Helper()
	g := NewWithT(t)
	var pods corev1.PodList
	g.Expect(h.WithWatch.List(t.Context(), &pods, client.InNamespace("kubeopera-core"), client.MatchingLabels{"app.kubernetes.io/name": "kubeopera-api"})).To(Succeed())
	var elder *corev1.Pod
	ready := 0
	for i := range pods.Items {
		pod := &pods.Items[i]
		for _, condition := range pod.Status.Conditions {
			if condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue {
				ready++
			}
		}
		if elder == nil || pod.CreationTimestamp.Before(&elder.CreationTimestamp) {
			elder = pod
		}
	}
	if ready < 2 {
		return 0
	}
	g.Expect(h.Delete(t.Context(), elder, client.GracePeriodSeconds(0))).To(Succeed())
	return 1
}

// event is what a watch tells, of what is stored as the view shows it.
type event struct {
	kind watch.EventType
	in   string
	uid  types.UID
	text string
}

// told is what a watch has told so far.
type told struct {
	mu     sync.Mutex
	events []event
}

// of gives the events of a namespace, or all.
func (w *told) of(namespace string) []event {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := []event{}
	for _, e := range w.events {
		if namespace == "" || e.in == namespace {
			all = append(all, e)
		}
	}
	return all
}

func (w *told) keep(t *testing.T, is watch.Event) {
	t.Helper()
	o, ok := is.Object.(*unstructured.Unstructured)
	if !ok {
		t.Errorf("a watch ended with %v", is.Object)
		return
	}
	if o.GroupVersionKind().Group == v1alpha1.SchemeGroupVersion.Group {
		projection.CloudSpace(o)
	}
	text, err := json.Marshal(o)
	if err != nil {
		t.Error(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events = append(w.events, event{is.Type, o.GetNamespace(), o.GetUID(), string(text)})
}

// watched keeps what a watch tells from a version on. When it is cut off it goes on where it was: it never lists anew.
func watched(ctx context.Context, t *testing.T, as *rest.Config, resource schema.GroupVersionResource, from string) *told {
	t.Helper()
	watcher, err := toolswatch.NewRetryWatcherWithContext(ctx, from, listWatch(t, as, resource, func(bool) {}))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	w := &told{}
	go func() {
		for is := range watcher.ResultChan() {
			w.keep(t, is)
		}
	}()
	return w
}

// listWatch asks for all CloudSpaces that somebody sees, and tells when it begins anew, by a list or by a watch alone.
func listWatch(t *testing.T, as *rest.Config, resource schema.GroupVersionResource, begins func(byWatch bool)) *cache.ListWatch {
	t.Helper()
	dynamically, err := dynamic.NewForConfig(as)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	all := dynamically.Resource(resource)
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			begins(false)
			return all.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			if options.SendInitialEvents != nil && *options.SendInitialEvents {
				begins(true)
			}
			return all.Watch(ctx, options)
		},
	}
}

// follower is an informer of the view, and what it told.
type follower struct {
	cache.SharedIndexInformer
	// namespace that all it sees is in; empty for all.
	namespace string
	watchList bool

	mu             sync.Mutex
	added, deleted map[types.UID]int
	foreign        []string
	// begun counts how it began anew, by a watch alone or not.
	begun map[bool]int
}

// informed starts an informer of all CloudSpaces that somebody sees, which are those of a namespace, or all.
func informed(ctx context.Context, t *testing.T, as *rest.Config, namespace string, watchList bool) *follower {
	t.Helper()
	g := NewWithT(t)
	f := &follower{namespace: namespace, watchList: watchList, added: map[types.UID]int{}, deleted: map[types.UID]int{}, begun: map[bool]int{}}
	from := cache.ToListWatcherWithWatchListSemantics(listWatch(t, as, viewOfCloudSpaces, f.begins), withoutWatchList(!watchList))
	f.SharedIndexInformer = cache.NewSharedIndexInformer(from, &unstructured.Unstructured{}, 0, nil)
	_, err := f.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { f.told(nil, o) },
		UpdateFunc: f.told,
		DeleteFunc: func(o any) { f.told(o, nil) },
	})
	g.Expect(err).NotTo(HaveOccurred())
	go f.RunWithContext(ctx)
	g.Expect(cache.WaitForCacheSync(ctx.Done(), f.HasSynced)).To(BeTrue())
	return f
}

// withoutWatchList has informers list before they watch, as those of older clients do.
type withoutWatchList bool

// IsWatchListSemanticsUnSupported is what informers ask of a client.
func (w withoutWatchList) IsWatchListSemanticsUnSupported() bool { return bool(w) }

func (f *follower) begins(byWatch bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.begun[byWatch]++
}

// told counts what came and went. An object in the place of another is both.
func (f *follower) told(before, after any) {
	if last, ok := before.(cache.DeletedFinalStateUnknown); ok {
		before = last.Obj
	}
	was, _ := before.(*unstructured.Unstructured)
	is, _ := after.(*unstructured.Unstructured)
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, o := range []*unstructured.Unstructured{was, is} {
		if o != nil && f.namespace != "" && o.GetNamespace() != f.namespace {
			f.foreign = append(f.foreign, o.GetNamespace()+"/"+o.GetName())
		}
	}
	if was != nil && is != nil && was.GetUID() == is.GetUID() {
		return
	}
	if was != nil {
		f.deleted[was.GetUID()]++
	}
	if is != nil {
		f.added[is.GetUID()]++
	}
}

func (f *follower) hasWhatIsStored(g Gomega, stored *unstructured.UnstructuredList) {
	g.Expect(f.GetStore().ListKeys()).To(HaveLen(len(stored.Items)))
	for i := range stored.Items {
		got, found, err := f.GetStore().Get(&stored.Items[i])
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(found).To(BeTrue())
		g.Expect(reflect.DeepEqual(got, &stored.Items[i])).To(BeTrue(), "%v\n%v", got, &stored.Items[i])
	}
}

// toldOf what happened: what came came once, and went once or is there. What came and went while an informer was cut off is told to who
// goes on where it was; one that had to begin anew has what there is then.
func (f *follower) toldOf(g Gomega, happened []event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	g.Expect(f.foreign).To(BeEmpty())
	g.Expect(f.begun).To(HaveKey(f.watchList))
	there := map[types.UID]int{}
	for _, each := range f.GetStore().List() {
		there[each.(*unstructured.Unstructured).GetUID()]++
	}
	for uid, times := range f.added {
		g.Expect(times).To(Equal(1))
		g.Expect(f.deleted[uid]+there[uid]).To(Equal(1), "what came is there or went")
	}
	for uid := range f.deleted {
		g.Expect(f.added).To(HaveKey(uid), "what went had come")
	}
	if f.begun[true]+f.begun[false] > 1 {
		return
	}
	for _, e := range happened {
		g.Expect(f.added).To(HaveKey(e.uid))
		if e.kind == watch.Deleted {
			g.Expect(f.deleted).To(HaveKey(e.uid))
		}
	}
}
