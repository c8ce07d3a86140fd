// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
	"github.com/tantilium/cloud-runner/internal/conditions/conditionstest"
)

// statusWatch sees every version of every Tenant and CloudSpace and holds each status that is written to the rules.
type statusWatch struct {
	mu    sync.Mutex
	seen  map[string][]client.Object
	wrong []error
}

// start begins where each list ends.
func (w *statusWatch) start(ctx context.Context) error {
	for _, list := range []client.ObjectList{&v1alpha1.TenantList{}, &v1alpha1.CloudSpaceList{}} {
		watching, err := everyEvent(ctx, list)
		if err != nil {
			return err
		}
		go w.follow(ctx, watching)
	}
	return nil
}

// everyEvent watches what happens to objects of a kind from now on. The API server ends a watch whose reader falls behind, and one that is
// begun anew must not miss what came in between: it goes on from the last version it had.
func everyEvent(ctx context.Context, list client.ObjectList) (watch.Interface, error) {
	if err := api.List(ctx, list); err != nil {
		return nil, err
	}
	return watchtools.NewRetryWatcherWithContext(ctx, list.GetResourceVersion(), &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return api.Watch(ctx, list, &client.ListOptions{Raw: &options})
		},
	})
}

// follow takes events off the watch as they come, so that the API server seldom has to end it.
func (w *statusWatch) follow(ctx context.Context, watching watch.Interface) {
	events := make(chan watch.Event, 1<<18)
	go func() {
		defer close(events)
		for event := range watching.ResultChan() {
			events <- event
		}
	}()
	for event := range events {
		object, ok := event.Object.(client.Object)
		if !ok {
			w.complain(fmt.Errorf("a watch of statuses: %w", apierrors.FromObject(event.Object)))
			continue
		}
		w.note(ctx, object, event.Type)
	}
	if ctx.Err() == nil {
		w.complain(errors.New("a watch of statuses ended before the tests: what was written since was not checked"))
	}
}

func (w *statusWatch) complain(wrong error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wrong = append(w.wrong, wrong)
}

// note keeps a version whose status is new, and checks it. A version that only has a new spec, or is gone, was not written by
// the operator.
func (w *statusWatch) note(ctx context.Context, object client.Object, kind watch.EventType) {
	w.mu.Lock()
	defer w.mu.Unlock()
	key := string(object.GetUID())
	before := w.seen[key]
	if kind == watch.Deleted || phaseOf(object) == "" ||
		(len(before) > 0 && equality.Semantic.DeepEqual(statusOf(before[len(before)-1]), statusOf(object))) {
		return
	}
	w.seen[key] = append(before, object)
	if err := conditionstest.Check(ctx, object); err != nil {
		w.wrong = append(w.wrong, fmt.Errorf("%T %s/%s at version %s, phase %s: %w", object, object.GetNamespace(), object.GetName(),
			object.GetResourceVersion(), phaseOf(object), err))
	}
}

// complaints are all that was wrong with a status, at the end of the run.
func (w *statusWatch) complaints() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return errors.Join(w.wrong...)
}

// versions are those of an object whose status was new, in the order they were written.
func (w *statusWatch) versions(object client.Object) []client.Object {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.seen[string(object.GetUID())])
}

// phases are those an object went through until it was as it was just read, each once. The watch may be behind the reader.
func (w *statusWatch) phases(t *testing.T, object client.Object) []string {
	t.Helper()
	eventually(t, func(g gomega.Gomega) {
		g.Expect(w.versions(object)).To(gomega.ContainElement(gomega.Satisfy(func(version client.Object) bool {
			return equality.Semantic.DeepEqual(statusOf(version), statusOf(object))
		})))
	})
	var phases []string
	for _, version := range w.versions(object) {
		phases = append(phases, phaseOf(version))
	}
	return slices.Compact(phases)
}

func phaseOf(object client.Object) string {
	switch o := object.(type) {
	case *v1alpha1.Tenant:
		return string(o.Status.Phase)
	case *v1alpha1.CloudSpace:
		return string(o.Status.Phase)
	default:
		return ""
	}
}

func statusOf(object client.Object) any {
	switch o := object.(type) {
	case *v1alpha1.Tenant:
		return o.Status
	case *v1alpha1.CloudSpace:
		return o.Status
	default:
		return nil
	}
}
