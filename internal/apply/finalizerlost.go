// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// FinalizerLost lets through the change in which somebody takes our finalizer off an object that is not being deleted: it is put back,
// or what was made for the object would outlive it. That we put it on is no news.
func FinalizerLost(finalizer string) predicate.Predicate {
	has := func(object client.Object) bool { return controllerutil.ContainsFinalizer(object, finalizer) }
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return has(e.ObjectOld) && !has(e.ObjectNew) && e.ObjectNew.GetDeletionTimestamp().IsZero()
	}}
}
