// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package cloudspace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
	"github.com/tantilium/cloud-runner/internal/names"
	"github.com/tantilium/cloud-runner/internal/step"
)

// secretServer has no Secrets, and counts who watches for them.
type secretServer struct {
	begun, open atomic.Int32
	// silent has it not say what stands, until answer.
	silent   atomic.Bool
	answered chan struct{}
}

func (s *secretServer) answer() { close(s.answered) }

// loadedMachine is how long what comes at once may take on a machine that is busy.
const loadedMachine = 30 * time.Second

func newSecretServer(t *testing.T) (*secretServer, kubernetes.Interface) {
	t.Helper()
	s, over := &secretServer{answered: make(chan struct{})}, make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Query().Get("watch") == "" {
			_, _ = io.WriteString(w, `{"kind":"SecretList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[]}`)
			return
		}
		s.begun.Add(1)
		s.open.Add(1)
		defer s.open.Add(-1)
		if s.silent.Load() {
			select {
			case <-s.answered:
			case <-over:
			case <-r.Context().Done():
			}
		}
		if r.URL.Query().Get("sendInitialEvents") == "true" {
			_, _ = io.WriteString(w, `{"type":"BOOKMARK","object":{"kind":"Secret","apiVersion":"v1","metadata":{"resourceVersion":"1","annotations":{"k8s.io/initial-events-end":"true"}}}}`)
		}
		w.(http.Flusher).Flush()
		select {
		case <-r.Context().Done():
		case <-over:
		}
	}))
	t.Cleanup(func() {
		close(over)
		server.Close()
	})
	api, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	return s, api
}

// endsWith has watches end with a test: another server may have the same port afterwards, and would be asked by them.
func endsWith[W interface {
	Start(ctx context.Context) error
}](t *testing.T, watches W) W {
	t.Helper()
	t.Cleanup(func() {
		over, stop := context.WithCancel(context.Background())
		stop()
		if err := watches.Start(over); err != nil {
			t.Error(err)
		}
	})
	return watches
}

// watches waits until so many watches were begun, and so many are open.
func (s *secretServer) watches(t *testing.T, when string, begun, open int32) {
	t.Helper()
	gomega.NewWithT(t).Eventually(func() [2]int32 { return [2]int32{s.begun.Load(), s.open.Load()} }).WithTimeout(loadedMachine).
		Should(gomega.Equal([2]int32{begun, open}), when)
}

// A CloudSpace that was made anew under the name of one that was lost must not go by what is seen of that one.
func TestAWatchIsOfOneCloudSpaceAlone(t *testing.T) {
	server, api := newSecretServer(t)
	kubeconfigs, pulls := endsWith(t, NewKubeconfigWatch(api)), endsWith(t, NewPullSecretWatch(api))
	follow := func(uid types.UID) {
		s := newScope(testCloudSpace("default", func(c *v1alpha1.CloudSpace) { c.UID = uid }))
		_, _ = kubeconfigs.Follow(s.key(), s.names, s.owner, true)
		_, _ = pulls.Copies(s.key(), s.names, s.owner, true)
	}
	follow("uid-1")
	server.watches(t, "at first", 2, 2)
	follow("uid-1")
	server.watches(t, "in the next pass", 2, 2)
	follow("uid-2")
	server.watches(t, "of the new one", 4, 2)
	key := client.ObjectKeyFromObject(testCloudSpace("default"))
	kubeconfigs.Forget(key)
	pulls.Forget(key)
	server.watches(t, "when it is gone", 4, 0)
}

// What can wait begins in turns, so that what is new is not kept waiting by ten thousand that are only to be seen again; and whoever waits is
// told when it is seen, without looking again and again.
func TestWatchesThatCanWaitBeginInTurns(t *testing.T) {
	server, api := newSecretServer(t)
	server.silent.Store(true)
	kubeconfigs := endsWith(t, NewKubeconfigWatch(api))
	follow := func(name string, urgent bool) error {
		s := newScope(testCloudSpace(name))
		_, err := kubeconfigs.Follow(s.key(), s.names, s.owner, urgent)
		return err
	}
	const all = 3 * beginsAtOnce
	for i := range all {
		if err := follow(fmt.Sprintf("waits-%d", i), false); !errors.Is(err, step.ErrUnseen) {
			t.Fatalf("it is known at once: %v", err)
		}
	}
	server.watches(t, "of those that can wait", beginsAtOnce, beginsAtOnce)
	_ = follow("new", true)
	server.watches(t, "with one that cannot", beginsAtOnce+1, beginsAtOnce+1)
	for i := range all {
		_ = follow(fmt.Sprintf("waits-%d", i), true)
	}
	server.watches(t, "when none can wait any more", all+1, all+1)
	server.answer()
	told := map[string]int{}
	for range all + 1 {
		told[(<-kubeconfigs.Changes).Object.GetName()]++
	}
	for name, times := range told {
		if err := follow(name, false); err != nil || times != 1 {
			t.Errorf("%s was told of %d times, and is known: %v", name, times, err)
		}
	}
	if len(told) != all+1 {
		t.Errorf("%d were told of, want %d", len(told), all+1)
	}
	for i := range all {
		_ = follow(fmt.Sprintf("later-%d", i), false)
	}
	for range all {
		<-kubeconfigs.Changes
	}
	server.watches(t, "of those that had their turns one after the other", 2*all+1, 2*all+1)
}

// After an outage of the host all may be in a hurry: the API server that has just come back is not asked by all of them at once.
func TestWatchesInAHurryAreBoundedToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newSecretWatch(nil, whole)
		hurried := make(chan struct{})
		const asked = beginsAtOnce + urgentAtOnce + 2
		begun := make(chan func(), asked)
		for range asked {
			go func() { begun <- w.takeTurn(t.Context(), hurried) }()
		}
		synctest.Wait()
		if len(begun) != beginsAtOnce {
			t.Errorf("%d of those that can wait began at once, want %d", len(begun), beginsAtOnce)
		}
		close(hurried)
		synctest.Wait()
		if len(begun) != asked-2 {
			t.Errorf("%d began at once, want %d", len(begun), asked-2)
		}
		for range 2 {
			leave := <-begun
			leave()
		}
		synctest.Wait()
		if len(begun) != asked-2 {
			t.Errorf("%d are left when two had their turns, want %d: the last two began", len(begun), asked-2)
		}
	})
}

// A Secret that comes while a pass looks is seen, or not known yet: it is never taken for one that is not there.
func TestASecretThatComesWhileItIsLookedForIsNotMissed(t *testing.T) {
	s := newScope(testCloudSpace("default"))
	coming := func(namespace, name string) *followed {
		store := cache.NewStore(cache.MetaNamespaceKeyFunc)
		return &followed{store: store, namespace: namespace, stop: func() {}, synced: func() bool {
			return store.Add(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}) == nil
		}}
	}
	kubeconfigs, pulls := NewKubeconfigWatch(nil), NewPullSecretWatch(nil)
	of := func(f *followed, uid types.UID) *followed {
		f.of = uid
		return f
	}
	kubeconfigs.followed[s.key()] = of(coming(s.names.HostNamespace(), s.names.SourceSecret()), s.owner.UID)
	pulls.copies.followed[s.key()] = of(coming(s.names.HostNamespace(), names.PullSecret("mirror")), s.owner.UID)
	pulls.sources.followed[types.NamespacedName{Namespace: names.SystemNamespace, Name: "mirror"}] = coming(names.SystemNamespace, "mirror")
	if secret, err := kubeconfigs.Follow(s.key(), s.names, s.owner, false); secret == nil || err != nil {
		t.Errorf("the kubeconfig is %v, %v", secret, err)
	}
	if copies, err := pulls.Copies(s.key(), s.names, s.owner, false); len(copies) != 1 || err != nil {
		t.Errorf("the copies are %v, %v", copies, err)
	}
	if source, err := pulls.Source("mirror"); source == nil || err != nil {
		t.Errorf("the source is %v, %v", source, err)
	}
}

// What is asked for in vain is said to be so, keeps nobody else from beginning, and is told of again when it is known after all.
func TestSecretsThatCannotBeReadAreSaidToBeSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		known := make(chan struct{})
		var left, told atomic.Int32
		f := &followed{namespace: "space", synced: func() bool {
			select {
			case <-known:
				return true
			default:
				return false
			}
		}}
		go f.hear(t.Context(), known, sync.OnceFunc(func() { left.Add(1) }), func() { told.Add(1) })
		for _, tt := range []struct {
			after      time.Duration
			left, told int32
			class      string
		}{{turnLasts - 1, 0, 0, "Stale"}, {1, 1, 0, "Stale"}, {followPatience - turnLasts, 1, 1, "Wait"}} {
			<-time.After(tt.after)
			synctest.Wait()
			if left.Load() != tt.left || told.Load() != tt.told || step.Class(f.pending()) != tt.class {
				t.Errorf("%s later: left %d times, told %d times, %v", tt.after, left.Load(), told.Load(), f.pending())
			}
		}
		close(known)
		synctest.Wait()
		if err := f.pending(); err != nil || told.Load() != 2 {
			t.Errorf("when it is known: told %d times, %v", told.Load(), err)
		}
	})
}

// A pass may still be on its way when the program stops; what it asks to follow must not be watched for ever.
func TestNoWatchOutlivesTheProgram(t *testing.T) {
	server, api := newSecretServer(t)
	pulls := NewPullSecretWatch(api)
	_, _ = pulls.Source("first")
	server.watches(t, "while it runs", 1, 1)
	over, stop := context.WithCancel(t.Context())
	stop()
	if err := pulls.Start(over); err != nil {
		t.Fatal(err)
	}
	server.watches(t, "when it has ended", 1, 0)
	late := pulls.sources.follow(types.NamespacedName{Name: "late"}, "", "late", true, byName("late"))
	s := newScope(testCloudSpace("default"))
	if _, err := pulls.Copies(s.key(), s.names, s.owner, true); err == nil || late.synced() {
		t.Error("a watch that begins after the end says that it knows what stands")
	}
	server.watches(t, "of a pass that came late", 1, 0)
}

// However a CloudSpace goes, its watches and what is remembered of it go too.
func TestNothingIsKeptOfACloudSpaceThatIsGone(t *testing.T) {
	ways := map[string]func(*chaos){
		"it was taken down": func(c *chaos) {
			c.live([]byte{actDeleteOwner, 0, actPass, 0, actPass, 0, actPass, 0, actPass, 0, actPass, 0})
		},
		"it is gone, with its finalizer taken off": func(c *chaos) {
			object := c.object()
			object.Finalizers = nil
			c.Others(func() error { return c.Server.Update(c.t.Context(), object) })
			c.Others(func() error { return c.Server.Delete(c.t.Context(), object) })
			c.named()
		},
		"it goes, and only somebody else holds it": func(c *chaos) {
			object := c.object()
			object.Finalizers = []string{"example.com/hold"}
			c.Others(func() error { return c.Server.Update(c.t.Context(), object) })
			c.Others(func() error { return c.Server.Delete(c.t.Context(), object) })
			c.named()
		},
	}
	for name, goes := range ways {
		t.Run(name, func(t *testing.T) {
			c := newChaos(t)
			key := client.ObjectKeyFromObject(testCloudSpace("default"))
			stopped := 0
			stop := func() { stopped++ }
			for _, w := range []*secretWatch{c.r.Kubeconfigs.secretWatch, c.r.PullSecrets.copies} {
				w.followed[key] = &followed{of: "uid-1", store: c.source, namespace: "vcluster-alice-default", synced: func() bool { return true }, stop: stop}
			}
			c.live(upToActive)
			c.named()
			c.r.looks.wait(key, noon)
			if _, proven := c.r.fluxProven.byName.Load(key); !proven || stopped > 0 {
				t.Fatalf("Flux is proven: %v, %d watches ended too early", proven, stopped)
			}
			goes(c)
			_, proven := c.r.fluxProven.byName.Load(key)
			_, looked := c.r.looks.byName.Load(key)
			if stopped != 2 || proven || looked {
				t.Errorf("%d watches ended, want 2; it is remembered what runs: %v, and when it was looked at: %v", stopped, proven, looked)
			}
		})
	}
}

// named has the reconciler called as the queue calls it.
func (c *chaos) named() {
	c.t.Helper()
	if _, err := c.r.reconcileNamed(c.t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(testCloudSpace("default"))}); err != nil {
		c.t.Fatal(err)
	}
}
