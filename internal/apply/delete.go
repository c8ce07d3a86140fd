// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tantilium/cloud-runner/internal/step"
)

// Delete takes an object down, as the cache has it, and tells whether it is gone. An object of somebody else counts as gone:
// it is left alone. The object is filled with what the cache has. See also Verify.
func (a Applier) Delete(ctx context.Context, owner Owner, object client.Object) (gone bool, err error) {
	switch err := a.Client.Get(ctx, client.ObjectKeyFromObject(object), object); {
	case apierrors.IsNotFound(err) && a.Memory.expects(object):
		return false, step.ErrStale
	case apierrors.IsNotFound(err):
		return true, nil
	case err != nil:
		return false, err
	case !owner.Owns(object):
		return true, nil
	default:
		return false, a.Remove(ctx, owner, object)
	}
}

// Remove deletes an object that was just read, whoever made it, for an owner, unless that was done already.
func (a Applier) Remove(ctx context.Context, owner Owner, object client.Object) error {
	if !object.GetDeletionTimestamp().IsZero() || a.Memory.Behind(object) {
		return nil
	}
	if err := owner.Confirm(ctx); err != nil {
		return err
	}
	uid := object.GetUID()
	if err := a.Client.Delete(ctx, object, client.Preconditions{UID: &uid}); err != nil {
		return client.IgnoreNotFound(err)
	}
	a.Memory.noteDeletion(object)
	return nil
}

// Verify reads live whether an object is gone, and deletes it if it is not: a cache may not have seen yet what was made
// before the operator started, or by an instance that led before. It is the last thing to do before an owner is let go.
func (a Applier) Verify(ctx context.Context, owner Owner, object client.Object) (gone bool, err error) {
	if err := a.Live.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	}
	if !owner.Owns(object) {
		return true, nil
	}
	return false, a.Remove(ctx, owner, object)
}
