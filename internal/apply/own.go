// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/tantilium/cloud-runner/internal/step"
)

// Claim makes an object ours that an administrator made beforehand for this owner. The caller must know that it was.
func (a Applier) Claim(ctx context.Context, owner Owner, cached client.Object) error {
	if a.Memory.Behind(cached) {
		return step.ErrStale
	}
	if err := owner.Confirm(ctx); err != nil {
		return err
	}
	cached.SetLabels(merge(cached.GetLabels(), owner.Labels()))
	if err := a.Client.Update(ctx, cached); err != nil {
		return err
	}
	a.Memory.note(cached)
	return nil
}

// Annotate sets one annotation, unless it has that value already. The object must have been read in this pass.
func (a Applier) Annotate(ctx context.Context, object client.Object, key, value string) error {
	if object.GetAnnotations()[key] == value {
		return nil
	}
	before := copyOf(object)
	object.SetAnnotations(merge(object.GetAnnotations(), map[string]string{key: value}))
	if err := a.Client.Patch(ctx, object, client.MergeFrom(before)); err != nil {
		return err
	}
	a.Memory.note(object)
	return nil
}

// AddFinalizer puts our finalizer on a Tenant or CloudSpace, before anything is made for it, and tells whether it was missing.
// Nothing may be made in the same pass: an API server that was deleting the object at that moment does not see the finalizer and
// removes the object all the same, or has done so already, and what was made for it would be left.
func (a Applier) AddFinalizer(ctx context.Context, object client.Object, finalizer string) (missing bool, err error) {
	before := copyOf(object)
	if !controllerutil.AddFinalizer(object, finalizer) {
		return false, nil
	}
	if err := a.Client.Patch(ctx, object, lockedMerge(before)); err != nil {
		return true, client.IgnoreNotFound(err)
	}
	a.Memory.note(object)
	return true, nil
}

// RemoveFinalizer lets a Tenant or CloudSpace go, when nothing made for it is left.
func (a Applier) RemoveFinalizer(ctx context.Context, object client.Object, finalizer string) error {
	before := copyOf(object)
	if !controllerutil.RemoveFinalizer(object, finalizer) {
		return nil
	}
	if err := a.Client.Patch(ctx, object, lockedMerge(before)); err != nil {
		return client.IgnoreNotFound(err)
	}
	a.Memory.noteRelease(object)
	return nil
}

// PatchStatus writes what differs in status between an object as it was read and as it is now. It fails with a conflict when
// the object changed meanwhile: lists, conditions among them, are replaced as a whole.
func (a Applier) PatchStatus(ctx context.Context, before, object client.Object) error {
	if err := a.Client.Status().Patch(ctx, object, lockedMerge(before)); err != nil {
		return err
	}
	a.Memory.note(object)
	return nil
}

func lockedMerge(before client.Object) client.Patch {
	return client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
}

func copyOf(object client.Object) client.Object {
	duplicate, _ := object.DeepCopyObject().(client.Object)
	return duplicate
}
