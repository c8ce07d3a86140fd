// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/tantilium/cloud-runner/internal/step"
)

// StillAsRead makes the question whether a Tenant or CloudSpace is there as the cache has it, for Owner.Still. A finalizer keeps owners from
// going ahead of what was made for them, and a deletion is never taken back, but for one case: the host's etcd was restored to a time
// before. Each cache then sees that at a moment of its own. What one lacks by then would be made anew for an owner that never was, and stay;
// or be removed for a deletion that never was. The API server is asked once at most, so one answer must not outlive the pass.
func (a Applier) StillAsRead(owner client.Object) func(context.Context) error {
	asked, answer := false, error(nil)
	return func(ctx context.Context) error {
		if !asked {
			asked, answer = true, a.compare(ctx, owner)
		}
		return answer
	}
}

// compare fails with ErrPast when an object is gone, was made anew, has another spec, is being deleted or not any more, or lacks a
// finalizer that was seen.
func (a Applier) compare(ctx context.Context, seen client.Object) error {
	kind, err := a.Client.GroupVersionKindFor(seen)
	if err != nil {
		return err
	}
	// One that is empty: what is decoded into an object leaves there what the answer lacks.
	live := &metav1.PartialObjectMetadata{}
	live.SetGroupVersionKind(kind)
	err = a.Live.Get(ctx, client.ObjectKeyFromObject(seen), live)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	lost := func(finalizer string) bool { return !slices.Contains(live.Finalizers, finalizer) }
	otherwise := ""
	switch {
	case err != nil:
		otherwise = "is not there"
	case live.UID != seen.GetUID():
		otherwise = "was made anew"
	case live.DeletionTimestamp.IsZero() != seen.GetDeletionTimestamp().IsZero():
		otherwise = "is being deleted, or not any more"
	case live.Generation != seen.GetGeneration():
		otherwise = "has another spec"
	case slices.ContainsFunc(seen.GetFinalizers(), lost):
		otherwise = "lacks a finalizer"
	default:
		return nil
	}
	logf.FromContext(ctx).Info("The object is not as the cache has it, nothing is done", "object", client.ObjectKeyFromObject(seen), "it", otherwise)
	return step.ErrPast
}

// Confirm asks whether the owner is still there, if that is to be asked.
func (o Owner) Confirm(ctx context.Context) error {
	if o.Still == nil {
		return nil
	}
	return o.Still(ctx)
}
