// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package cloudspace

import (
	"context"
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
	"github.com/tantilium/cloud-runner/internal/names"
)

// KubeconfigWatch follows one Secret in each host namespace: the one in which the vCluster writes its kubeconfig. The
// operator has no right to read Secrets across namespaces, which an ordinary cache would need; it has a RoleBinding in each
// host namespace instead.
type KubeconfigWatch struct {
	client kubernetes.Interface
	// Changes tells of CloudSpaces whose Secret came, changed or went.
	Changes chan event.GenericEvent

	mu       sync.Mutex
	followed map[types.NamespacedName]followed
}

type followed struct {
	store cache.Store
	since time.Time
	// synced tells whether the store has what stands.
	synced func() bool
	stop   context.CancelFunc
}

// followPatience is how long a watch that has begun may take to hear what stands, before it counts as nothing.
const followPatience = 10 * time.Second

// NewKubeconfigWatch makes a watch that follows nothing yet.
func NewKubeconfigWatch(client kubernetes.Interface) *KubeconfigWatch {
	return &KubeconfigWatch{
		client:   client,
		Changes:  make(chan event.GenericEvent, 1024),
		followed: map[types.NamespacedName]followed{},
	}
}

// Start ends all watches when the program stops.
func (w *KubeconfigWatch) Start(ctx context.Context) error {
	<-ctx.Done()
	w.mu.Lock()
	defer w.mu.Unlock()
	for key, f := range w.followed {
		f.stop()
		delete(w.followed, key)
	}
	return nil
}

// Follow begins to watch a CloudSpace's Secret, if that is not done yet, and returns it as last seen; nil when there is none. It is not
// known while the watch has only begun: an operator that has just started must not take each CloudSpace for one without a kubeconfig.
// It never calls the API server itself.
func (w *KubeconfigWatch) Follow(cloudSpace types.NamespacedName, n names.CloudSpace, now time.Time) (secret *corev1.Secret, known bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f, ok := w.followed[cloudSpace]
	if !ok {
		f = w.begin(cloudSpace, n)
		f.since = now
		w.followed[cloudSpace] = f
	}
	known = f.synced() || now.Sub(f.since) > followPatience
	object, exists, err := f.store.GetByKey(n.HostNamespace() + "/" + n.SourceSecret())
	if err != nil || !exists {
		return nil, known
	}
	secret, _ = object.(*corev1.Secret)
	return secret, true
}

// Forget ends the watch of a CloudSpace that is being taken down.
func (w *KubeconfigWatch) Forget(cloudSpace types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if f, ok := w.followed[cloudSpace]; ok {
		f.stop()
		delete(w.followed, cloudSpace)
	}
}

func (w *KubeconfigWatch) begin(cloudSpace types.NamespacedName, n names.CloudSpace) followed {
	notify := func(any) {
		object := &v1alpha1.CloudSpace{ObjectMeta: metav1.ObjectMeta{Namespace: cloudSpace.Namespace, Name: cloudSpace.Name}}
		w.Changes <- event.GenericEvent{Object: object}
	}
	only := fields.OneTermEqualSelector(metav1.ObjectNameField, n.SourceSecret())
	store, controller := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: cache.NewListWatchFromClient(w.client.CoreV1().RESTClient(), "secrets", n.HostNamespace(), only),
		ObjectType:    &corev1.Secret{},
		Transform:     withoutManagedFields,
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    notify,
			UpdateFunc: func(_, object any) { notify(object) },
			DeleteFunc: notify,
		},
	})
	// The watch outlives the pass that begins it; Forget or Start ends it.
	ctx, stop := context.WithCancel(context.Background())
	go controller.RunWithContext(ctx)
	return followed{store: store, synced: controller.HasSynced, stop: stop}
}

func withoutManagedFields(object any) (any, error) {
	if secret, ok := object.(*corev1.Secret); ok {
		secret.ManagedFields = nil
	}
	return object, nil
}
