// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
)

type newInformer = func(toolscache.ListerWatcher, runtime.Object, time.Duration, toolscache.Indexers) toolscache.SharedIndexInformer

// view is what a cache shows, and when.
type view struct {
	// serves tells which objects it has; nil means all.
	serves func(client.Object) bool
	// lag is how long after it happened it hears of a change.
	lag time.Duration
	// blind makes it begin empty, but for Tenants and CloudSpaces: it hears of what stands with the lag.
	blind bool
}

// informers makes caches with a view.
func informers(v view) newInformer {
	return func(from toolscache.ListerWatcher, object runtime.Object, resync time.Duration, indexers toolscache.Indexers) toolscache.SharedIndexInformer {
		narrow := &narrowed{ListerWatcher: from, view: v}
		switch object.(type) {
		case *v1alpha1.Tenant, *v1alpha1.CloudSpace:
			narrow.blind = false
		}
		return toolscache.NewSharedIndexInformer(narrow, object, resync, indexers)
	}
}

// narrowed lists and watches what a view shows. Informers call the methods with a context.
type narrowed struct {
	toolscache.ListerWatcher
	view
	// unseen are those that a list has left out for the watch that follows it.
	unseen []runtime.Object
}

func (n *narrowed) ListWithContext(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	list, err := toolscache.ToListerWatcherWithContext(n.ListerWatcher).ListWithContext(ctx, options)
	if err != nil {
		return nil, err
	}
	items, err := meta.ExtractList(list)
	if err != nil {
		return nil, err
	}
	kept := make([]runtime.Object, 0, len(items))
	for _, item := range items {
		if object, ok := item.(client.Object); !ok || n.serves == nil || n.serves(object) {
			kept = append(kept, item)
		}
	}
	if n.blind {
		n.blind, n.unseen, kept = false, kept, nil
	}
	return list, meta.SetList(list, kept)
}

func (n *narrowed) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	events, err := toolscache.ToListerWatcherWithContext(n.ListerWatcher).WatchWithContext(ctx, options)
	if err != nil {
		return nil, err
	}
	if n.lag > 0 {
		events = delayed(ctx, events, n.lag, n.unseen)
		n.unseen = nil
	}
	if n.serves == nil {
		return events, nil
	}
	return watch.Filter(events, func(event watch.Event) (watch.Event, bool) {
		object, ok := event.Object.(client.Object)
		return event, !ok || event.Type == watch.Bookmark || n.serves(object)
	}), nil
}

// delayed passes events on a while after they came, in their order; before them, that some objects are there.
func delayed(ctx context.Context, from watch.Interface, lag time.Duration, first []runtime.Object) watch.Interface {
	type dated struct {
		watch.Event
		due time.Time
	}
	ctx, cancel := context.WithCancel(ctx)
	waiting, passed := make(chan dated, 10_000), make(chan watch.Event)
	go func() {
		defer close(waiting)
		for _, object := range first {
			waiting <- dated{watch.Event{Type: watch.Added, Object: object}, time.Now().Add(lag)}
		}
		for event := range from.ResultChan() {
			waiting <- dated{event, time.Now().Add(lag)}
		}
	}()
	go func() {
		defer close(passed)
		for event := range waiting {
			select {
			case <-time.After(time.Until(event.due)):
			case <-ctx.Done():
				return
			}
			select {
			case passed <- event.Event:
			case <-ctx.Done():
				return
			}
		}
	}()
	return stoppable{Interface: from, passed: passed, cancel: cancel}
}

type stoppable struct {
	watch.Interface
	passed chan watch.Event
	cancel context.CancelFunc
}

func (s stoppable) ResultChan() <-chan watch.Event { return s.passed }

func (s stoppable) Stop() {
	s.cancel()
	s.Interface.Stop()
}
