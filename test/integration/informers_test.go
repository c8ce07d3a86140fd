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
)

type newInformer = func(toolscache.ListerWatcher, runtime.Object, time.Duration, toolscache.Indexers) toolscache.SharedIndexInformer

// informers makes caches that have only some objects, and hear of changes with a lag.
func informers(serves func(client.Object) bool, lag time.Duration) newInformer {
	return func(from toolscache.ListerWatcher, object runtime.Object, resync time.Duration, indexers toolscache.Indexers) toolscache.SharedIndexInformer {
		return toolscache.NewSharedIndexInformer(narrowed{ListerWatcher: from, serves: serves, lag: lag}, object, resync, indexers)
	}
}

// narrowed lists and watches what serves lets through, lag after it happened. Informers call the methods with a context.
type narrowed struct {
	toolscache.ListerWatcher
	serves func(client.Object) bool
	lag    time.Duration
}

func (n narrowed) ListWithContext(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
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
		if object, ok := item.(client.Object); !ok || n.serves(object) {
			kept = append(kept, item)
		}
	}
	return list, meta.SetList(list, kept)
}

func (n narrowed) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	events, err := toolscache.ToListerWatcherWithContext(n.ListerWatcher).WatchWithContext(ctx, options)
	if err != nil {
		return nil, err
	}
	if n.lag > 0 {
		events = delayed(ctx, events, n.lag)
	}
	return watch.Filter(events, func(event watch.Event) (watch.Event, bool) {
		object, ok := event.Object.(client.Object)
		return event, !ok || event.Type == watch.Bookmark || n.serves(object)
	}), nil
}

// delayed passes events on a while after they came, in their order.
func delayed(ctx context.Context, from watch.Interface, lag time.Duration) watch.Interface {
	type dated struct {
		watch.Event
		due time.Time
	}
	ctx, cancel := context.WithCancel(ctx)
	waiting, passed := make(chan dated, 10_000), make(chan watch.Event)
	go func() {
		defer close(waiting)
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
