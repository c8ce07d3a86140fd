// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// AddFinalizer puts our finalizer on a Tenant or CloudSpace, before anything is made for it.
func AddFinalizer(ctx context.Context, c client.Client, object client.Object, finalizer string) error {
	before := copyOf(object)
	if !controllerutil.AddFinalizer(object, finalizer) {
		return nil
	}
	return c.Patch(ctx, object, lockedMerge(before))
}

// RemoveFinalizer lets a Tenant or CloudSpace go, when nothing made for it is left.
func RemoveFinalizer(ctx context.Context, c client.Client, object client.Object, finalizer string) error {
	before := copyOf(object)
	if !controllerutil.RemoveFinalizer(object, finalizer) {
		return nil
	}
	return client.IgnoreNotFound(c.Patch(ctx, object, lockedMerge(before)))
}

// PatchStatus writes what differs in status between an object as it was read and as it is now. It fails with a conflict when
// the object changed meanwhile: lists, conditions among them, are replaced as a whole.
func PatchStatus(ctx context.Context, c client.Client, before, object client.Object) error {
	return c.Status().Patch(ctx, object, lockedMerge(before))
}

func lockedMerge(before client.Object) client.Patch {
	return client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
}

func copyOf(object client.Object) client.Object {
	duplicate, _ := object.DeepCopyObject().(client.Object)
	return duplicate
}
