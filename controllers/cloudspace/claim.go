// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package cloudspace

import (
	"cmp"
	"context"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
)

// hostnameIndex finds the CloudSpaces that ask for a hostname.
const hostnameIndex = "spec.endpoint.hostname"

func indexHostname(object client.Object) []string {
	if c, ok := object.(*v1alpha1.CloudSpace); ok && c.Spec.Endpoint.Hostname != "" {
		return []string{c.Spec.Endpoint.Hostname}
	}
	return nil
}

// observeClaim finds out who has the hostname.
func (r *Reconciler) observeClaim(ctx context.Context, s *scope) error {
	list := &v1alpha1.CloudSpaceList{}
	if err := r.Client.List(ctx, list, client.MatchingFields{hostnameIndex: s.object.Spec.Endpoint.Hostname}); err != nil {
		return err
	}
	s.observed.hostnameTaken = takenFrom(s.object, list.Items)
	return nil
}

// takenFrom tells whether one of the others asked for the hostname of a CloudSpace before it did. Who asked is told by what only the
// API server sets: the time of creation, then the UID. A name is free again when the object that has it is gone.
func takenFrom(object *v1alpha1.CloudSpace, others []v1alpha1.CloudSpace) bool {
	return slices.ContainsFunc(others, func(other v1alpha1.CloudSpace) bool {
		return cmp.Or(other.CreationTimestamp.Compare(object.CreationTimestamp.Time), cmp.Compare(other.UID, object.UID)) < 0
	})
}

// comesOrGoes lets through what changes who has a hostname: that of an object never changes.
var comesOrGoes = predicate.Funcs{
	UpdateFunc:  func(event.UpdateEvent) bool { return false },
	GenericFunc: func(event.GenericEvent) bool { return false },
}

// rivals finds the other CloudSpaces that ask for the same hostname.
func (r *Reconciler) rivals(ctx context.Context, object client.Object) []reconcile.Request {
	var requests []reconcile.Request
	for _, hostname := range indexHostname(object) {
		requests = append(requests, r.list(ctx, client.MatchingFields{hostnameIndex: hostname})...)
	}
	own := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(object)}
	return slices.DeleteFunc(requests, func(request reconcile.Request) bool { return request == own })
}
