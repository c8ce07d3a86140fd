// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package cloudspace

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
	"github.com/tantilium/cloud-runner/internal/step"
)

// secretWatch follows a few Secrets for each of many objects. The operator has no right to read Secrets across namespaces, which an
// ordinary cache would need; it has a RoleBinding in each host namespace instead.
type secretWatch struct {
	client kubernetes.Interface
	// Changes tells of objects whose Secrets came, changed or went.
	Changes chan event.GenericEvent
	// slim takes away from a Secret what is not needed of it.
	slim func(*corev1.Secret)
	// turns are held by watches that begin and could wait, and urgentTurns by those that could not.
	turns, urgentTurns chan struct{}

	mu sync.Mutex
	// ended tells that the program stops: a pass that is still on its way then begins nothing that would outlive it.
	ended    bool
	followed map[types.NamespacedName]*followed
}

type followed struct {
	// of is the UID of the object that it is for; a new one of the same name has a watch of its own.
	of        types.UID
	store     cache.Store
	namespace string
	// synced tells whether the store has what stands, and unanswered that it was asked for in vain for some time.
	synced     func() bool
	unanswered atomic.Bool
	// hurry ends the wait for a turn of those that can wait, stop the watch.
	hurry, stop context.CancelFunc
}

const (
	// followPatience is how long a watch that has begun may take to hear what stands.
	followPatience = 30 * time.Second
	// beginsAtOnce bounds how many watches begin at a time of those that can wait. An operator that has just started begins two for each
	// CloudSpace: all at once they would keep the API server, and the operator, from what is new.
	beginsAtOnce = 16
	// urgentAtOnce bounds the others: after an outage of the host, all CloudSpaces can be among them.
	urgentAtOnce = 64
	// turnLasts is how long one of them keeps others from beginning at most: one that may not read its Secrets stands in nobody's way.
	turnLasts = 3 * time.Second
)

func newSecretWatch(client kubernetes.Interface, slim func(*corev1.Secret)) *secretWatch {
	return &secretWatch{
		client:      client,
		slim:        slim,
		Changes:     make(chan event.GenericEvent, 1024),
		turns:       make(chan struct{}, beginsAtOnce),
		urgentTurns: make(chan struct{}, urgentAtOnce),
		followed:    map[types.NamespacedName]*followed{},
	}
}

// Start ends all watches when the program stops.
func (w *secretWatch) Start(ctx context.Context) error {
	<-ctx.Done()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
	for _, f := range w.followed {
		f.stop()
	}
	return nil
}

// follow begins to watch Secrets of a namespace for an object, if that is not done yet, when it is its turn; what is urgent waits for few.
// Changes tells when it is known what stands. It never calls the API server itself.
func (w *secretWatch) follow(object types.NamespacedName, of types.UID, namespace string, urgent bool, which func(*metav1.ListOptions)) *followed {
	w.mu.Lock()
	defer w.mu.Unlock()
	f, ok := w.followed[object]
	if !ok || f.of != of {
		if ok {
			f.stop()
		}
		f = w.begin(object, namespace, which)
		f.of = of
		w.followed[object] = f
	}
	if urgent && !f.synced() {
		f.hurry()
	}
	return f
}

// Forget ends the watch of an object that is being taken down, or is gone.
func (w *secretWatch) Forget(object types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if f, ok := w.followed[object]; ok {
		f.stop()
		delete(w.followed, object)
	}
}

func (w *secretWatch) begin(object types.NamespacedName, namespace string, which func(*metav1.ListOptions)) *followed {
	// The watch outlives the pass that begins it; Forget or Start ends it.
	ctx, stop := context.WithCancel(context.Background())
	if w.ended {
		stop()
	}
	notify := func() {
		changed := &v1alpha1.CloudSpace{ObjectMeta: metav1.ObjectMeta{Namespace: object.Namespace, Name: object.Name}}
		select {
		case w.Changes <- event.GenericEvent{Object: changed}:
		case <-ctx.Done():
		}
	}
	store, controller := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: cache.NewFilteredListWatchFromClient(w.client.CoreV1().RESTClient(), "secrets", namespace, which),
		ObjectType:    &corev1.Secret{},
		Transform:     w.transform,
		Handler: cache.ResourceEventHandlerDetailedFuncs{
			AddFunc: func(_ any, stood bool) {
				if !stood {
					notify()
				}
			},
			UpdateFunc: func(any, any) { notify() },
			DeleteFunc: func(any) { notify() },
		},
	})
	hurried, hurry := context.WithCancel(context.Background())
	f := &followed{store: store, namespace: namespace, synced: controller.HasSynced, hurry: hurry, stop: stop}
	go func() {
		defer hurry()
		leave := w.takeTurn(ctx, hurried.Done())
		go controller.RunWithContext(ctx)
		f.hear(ctx, controller.HasSyncedChecker().Done(), leave, notify)
	}()
	return f
}

// takeTurn waits until a watch can begin, and gives what ends its turn. One that is in a hurry need not wait for those that are not.
func (w *secretWatch) takeTurn(ctx context.Context, hurried <-chan struct{}) (leave func()) {
	var urgentTurns chan struct{}
	for {
		select {
		case w.turns <- struct{}{}:
			return sync.OnceFunc(func() { <-w.turns })
		case urgentTurns <- struct{}{}:
			return sync.OnceFunc(func() { <-w.urgentTurns })
		case <-hurried:
			hurried, urgentTurns = nil, w.urgentTurns
		case <-ctx.Done():
			return func() {}
		}
	}
}

// hear waits until a watch that has begun knows what stands, and tells. If that takes long, it tells of that too, and lets others begin.
func (f *followed) hear(ctx context.Context, known <-chan struct{}, leave, notify func()) {
	defer leave()
	defer time.AfterFunc(turnLasts, leave).Stop()
	select {
	case <-known:
	case <-ctx.Done():
		return
	case <-time.After(followPatience):
		f.unanswered.Store(true)
		notify()
		select {
		case <-known:
		case <-ctx.Done():
			return
		}
	}
	// Whoever is told may take long to listen.
	leave()
	notify()
}

// byName lists one object.
func byName(name string) func(*metav1.ListOptions) {
	return func(o *metav1.ListOptions) {
		o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
	}
}

// pending is nil once it is known what stands. Before, it says that this was not seen yet, or that it was asked for in vain. It is asked
// before the store is: what comes in between is then seen, and not taken for what is not there.
func (f *followed) pending() error {
	switch {
	case f.synced():
		return nil
	case f.unanswered.Load():
		return step.Wait(v1alpha1.ReasonSecretsUnreadable, fmt.Sprintf("the Secrets of namespace %s cannot be read", f.namespace))
	default:
		return step.ErrUnseen
	}
}

// get is a Secret as last seen; nil when it has not been seen.
func (f *followed) get(name string) *corev1.Secret {
	object, exists, err := f.store.GetByKey(f.namespace + "/" + name)
	if err != nil || !exists {
		return nil
	}
	secret, _ := object.(*corev1.Secret)
	return secret
}

func (w *secretWatch) transform(object any) (any, error) {
	if secret, ok := object.(*corev1.Secret); ok {
		secret.ManagedFields = nil
		w.slim(secret)
	}
	return object, nil
}

// whole keeps all of a Secret.
func whole(*corev1.Secret) {}
