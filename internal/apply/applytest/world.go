// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

// Package applytest is a host cluster for tests in which anything can befall objects, in any order, and which holds each pass of a
// reconciler to what must be so always: it makes nothing but what is its own, and neither alters nor deletes what is not.
package applytest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// World is a host cluster in memory. Server must be made with its Funcs.
type World struct {
	Server client.WithWatch
	// Kinds are empty lists of the kinds that something can befall.
	Kinds []client.ObjectList
	// Ours tells whether an object may be made, altered and deleted in a pass.
	Ours func(client.Object) bool
	// Made alters what is about to be made, as an admission policy or a default would. May be nil.
	Made func(client.Object)

	refuse error
	made   int
}

// Funcs give what is made a UID, as an API server does, and refuse a write when it is time.
func (w *World) Funcs() interceptor.Funcs {
	return interceptor.Funcs{
		Create: func(ctx context.Context, server client.WithWatch, o client.Object, options ...client.CreateOption) error {
			w.made++
			o.SetUID(types.UID(fmt.Sprintf("uid-made-%d", w.made)))
			if w.Made != nil {
				w.Made(o)
			}
			if err := w.refused(); err != nil {
				return err
			}
			return server.Create(ctx, o, options...)
		},
		Update: func(ctx context.Context, server client.WithWatch, o client.Object, options ...client.UpdateOption) error {
			if err := w.refused(); err != nil {
				return err
			}
			return server.Update(ctx, o, options...)
		},
		Delete: func(ctx context.Context, server client.WithWatch, o client.Object, options ...client.DeleteOption) error {
			if err := w.refused(); err != nil {
				return err
			}
			return server.Delete(ctx, o, options...)
		},
		SubResourcePatch: func(ctx context.Context, server client.Client, sub string, o client.Object, p client.Patch, options ...client.SubResourcePatchOption) error {
			if err := w.refused(); err != nil {
				return err
			}
			return server.SubResource(sub).Patch(ctx, o, p, options...)
		},
	}
}

// refused is what this write meets. The next one meets nothing.
func (w *World) refused() error {
	err := w.refuse
	w.refuse = nil
	return err
}

// RefuseNext has the next write refused; the number chooses how.
func (w *World) RefuseNext(which int) {
	kind, cause := schema.GroupResource{Resource: "things"}, errors.New("no")
	w.refuse = []error{
		apierrors.NewConflict(kind, "it", cause), apierrors.NewNotFound(kind, "it"), apierrors.NewAlreadyExists(kind, "it"),
		apierrors.NewTooManyRequests("later", 1), apierrors.NewInvalid(schema.GroupKind{Kind: "Thing"}, "it", nil),
		apierrors.NewForbidden(kind, "it", cause), context.DeadlineExceeded, errors.New(string([]byte{0xff, 0xfe})),
	}[which%8]
}

// All are the objects that stand, in a fixed order.
func (w *World) All(t *testing.T) []client.Object {
	t.Helper()
	var found []client.Object
	for _, kind := range w.Kinds {
		list, _ := kind.DeepCopyObject().(client.ObjectList)
		if err := w.Server.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		if err := meta.EachListItem(list, func(o runtime.Object) error {
			object, _ := o.(client.Object)
			found = append(found, object)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	return found
}

// Others is what somebody else does, which is not refused in our stead. That it cannot be done is no matter.
func (w *World) Others(do func() error) {
	w.refuse = nil
	_ = do()
}

// Befall changes one of the objects.
func (w *World) Befall(t *testing.T, which int, change func(client.Object)) {
	t.Helper()
	if objects := w.All(t); len(objects) > 0 {
		object := objects[which%len(objects)]
		change(object)
		w.Others(func() error { return w.Server.Update(t.Context(), object) })
	}
}

// Remove deletes one of the objects.
func (w *World) Remove(t *testing.T, which int) {
	t.Helper()
	if objects := w.All(t); len(objects) > 0 {
		w.Others(func() error { return w.Server.Delete(t.Context(), objects[which%len(objects)]) })
	}
}

// Hold makes a pass and fails the test when it did anything to what is not ours.
func (w *World) Hold(t *testing.T, pass func()) {
	t.Helper()
	before := map[types.UID]client.Object{}
	for _, o := range w.All(t) {
		before[o.GetUID()] = o
	}
	pass()
	after := map[types.UID]bool{}
	for _, o := range w.All(t) {
		after[o.GetUID()] = true
		earlier, there := before[o.GetUID()]
		switch {
		case !there && !w.Ours(o):
			t.Fatalf("%T %s was made and is not ours", o, o.GetName())
		case there && !w.Ours(earlier) && earlier.GetResourceVersion() != o.GetResourceVersion():
			t.Fatalf("%T %s of somebody else was altered", o, o.GetName())
		}
	}
	for uid, o := range before {
		if !after[uid] && !w.Ours(o) {
			t.Fatalf("%T %s of somebody else was deleted", o, o.GetName())
		}
	}
}

// Rests makes a pass and fails the test when it changed anything.
func (w *World) Rests(t *testing.T, pass func()) {
	t.Helper()
	stands := func() (all []string) {
		for _, o := range w.All(t) {
			all = append(all, fmt.Sprintf("%T %s/%s %s at %s", o, o.GetNamespace(), o.GetName(), o.GetUID(), o.GetResourceVersion()))
		}
		return all
	}
	before := stands()
	pass()
	if diff := cmp.Diff(before, stands()); diff != "" {
		t.Errorf("the pass changed (-before +after):\n%s", diff)
	}
}
