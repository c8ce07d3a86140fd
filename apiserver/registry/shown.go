// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"errors"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/tantilium/cloud-runner/apiserver/projection"
	"github.com/tantilium/cloud-runner/apiserver/scope"
)

// shown is a watch of stored objects as a client of the view sees it.
type shown struct {
	result  chan watch.Event
	stopped chan struct{}
	stop    func()
}

// newShown passes events on until ctx ends. When it ends because the caller may not see them any more, the client is told to list anew:
// what it then may see, if anything, it sees then.
func newShown(ctx context.Context, end context.CancelFunc, events watch.Interface, r *Reader) watch.Interface {
	stopped := make(chan struct{})
	s := &shown{result: make(chan watch.Event), stopped: stopped, stop: sync.OnceFunc(func() { close(stopped) })}
	go func() {
		defer close(s.result)
		defer end()
		defer events.Stop()
		s.pass(ctx, events.ResultChan(), r)
	}()
	return s
}

// ResultChan gives the events.
func (s *shown) ResultChan() <-chan watch.Event { return s.result }

// Stop ends the watch.
func (s *shown) Stop() { s.stop() }

func (s *shown) pass(ctx context.Context, events <-chan watch.Event, r *Reader) {
	for {
		select {
		case <-s.stopped:
			return
		case <-ctx.Done():
			s.tell(ctx)
			return
		case event, open := <-events:
			if ctx.Err() != nil {
				s.tell(ctx)
				return
			}
			if !open {
				return
			}
			select {
			case s.result <- r.showEvent(event):
			case <-s.stopped:
				return
			case <-ctx.Done():
				s.tell(ctx)
				return
			}
		}
	}
}

// tell says why a watch ends that the client did not end.
func (s *shown) tell(ctx context.Context) {
	cause := context.Cause(ctx)
	if !errors.Is(cause, scope.ErrExpired) && !errors.Is(cause, scope.ErrMembershipChanged) {
		return
	}
	status := apierrors.NewResourceExpired(cause.Error() + ": list again").Status()
	select {
	case s.result <- watch.Event{Type: watch.Error, Object: &status}:
	case <-s.stopped:
	}
}

func (r *Reader) showEvent(event watch.Event) watch.Event {
	switch o := event.Object.(type) {
	case *unstructured.Unstructured:
		r.Show(o)
	case *metav1.Status:
		event.Object = projection.Status(o, r.Resource, r.Kind, "")
	}
	return event
}
