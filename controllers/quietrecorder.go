// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// quietRecorder records no events on objects in a namespace that is being deleted: the API server makes none there, and each try would
// be an error in the log. What there is to say stands in the object's status.
type quietRecorder struct {
	events.EventRecorder
	// namespaces are read from the cache.
	namespaces client.Reader
}

// Eventf records an event, unless it would be refused.
func (r quietRecorder) Eventf(regarding, related runtime.Object, kind, reason, action, note string, args ...any) { //nolint:revive // the interface has as many.
	if !r.ends(regarding) {
		r.EventRecorder.Eventf(regarding, related, kind, reason, action, note, args...)
	}
}

func (r quietRecorder) ends(regarding runtime.Object) bool {
	object, err := meta.Accessor(regarding)
	if err != nil || object.GetNamespace() == "" {
		return false
	}
	namespace := &corev1.Namespace{}
	if err := r.namespaces.Get(context.Background(), client.ObjectKey{Name: object.GetNamespace()}, namespace); err != nil {
		return false
	}
	return !namespace.DeletionTimestamp.IsZero()
}
