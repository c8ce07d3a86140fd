// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package cloudspace

import (
	"context"
	"fmt"
	"sync"
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

	mu sync.Mutex
	// ended tells that the program stops: a pass that is still on its way then begins nothing that would outlive it.
	ended    bool
	followed map[types.NamespacedName]followed
}

type followed struct {
	// of is the UID of the object that it is for; a new one of the same name has a watch of its own.
	of        types.UID
	store     cache.Store
	namespace string
	since     time.Time
	// synced tells whether the store has what stands.
	synced func() bool
	stop   context.CancelFunc
}

// followPatience is how long a watch that has begun may take to hear what stands.
const followPatience = 10 * time.Second

func newSecretWatch(client kubernetes.Interface, slim func(*corev1.Secret)) *secretWatch {
	return &secretWatch{
		client:   client,
		slim:     slim,
		Changes:  make(chan event.GenericEvent, 1024),
		followed: map[types.NamespacedName]followed{},
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

// follow begins to watch Secrets of a namespace for an object, if that is not done yet. It never calls the API server itself.
func (w *secretWatch) follow(object types.NamespacedName, of types.UID, namespace string, now time.Time, which func(*metav1.ListOptions)) followed {
	w.mu.Lock()
	defer w.mu.Unlock()
	f, ok := w.followed[object]
	if ok && f.of == of {
		return f
	}
	if ok {
		f.stop()
	}
	f = w.begin(object, namespace, which)
	f.of, f.since = of, now
	w.followed[object] = f
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

func (w *secretWatch) begin(object types.NamespacedName, namespace string, which func(*metav1.ListOptions)) followed {
	notify := func(any) {
		w.Changes <- event.GenericEvent{Object: &v1alpha1.CloudSpace{ObjectMeta: metav1.ObjectMeta{Namespace: object.Namespace, Name: object.Name}}}
	}
	store, controller := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: cache.NewFilteredListWatchFromClient(w.client.CoreV1().RESTClient(), "secrets", namespace, which),
		ObjectType:    &corev1.Secret{},
		Transform:     w.transform,
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    notify,
			UpdateFunc: func(_, secret any) { notify(secret) },
			DeleteFunc: notify,
		},
	})
	// The watch outlives the pass that begins it; Forget or Start ends it.
	ctx, stop := context.WithCancel(context.Background())
	if w.ended {
		stop()
	}
	go controller.RunWithContext(ctx)
	return followed{store: store, namespace: namespace, synced: controller.HasSynced, stop: stop}
}

// byName lists one object.
func byName(name string) func(*metav1.ListOptions) {
	return func(o *metav1.ListOptions) {
		o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
	}
}

// pending is nil once it is known what stands. Before, it says that the view is behind, and after a while that something is wrong.
func (f followed) pending(now time.Time) error {
	switch {
	case f.synced():
		return nil
	case now.Sub(f.since).Abs() <= followPatience:
		return step.ErrStale
	default:
		return fmt.Errorf("the Secrets of namespace %s cannot be read", f.namespace)
	}
}

// get is a Secret as last seen; nil when it has not been seen.
func (f followed) get(name string) *corev1.Secret {
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
