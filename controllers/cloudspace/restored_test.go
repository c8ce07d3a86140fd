// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package cloudspace

import (
	"context"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
)

// blind is a cache that has nothing.
type blind struct{ client.Client }

func (blind) Get(_ context.Context, key client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
	return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
}

// Restored to the past, the host's etcd does not have what caches still show, each for a time of its own.
func TestNothingIsDoneForACloudSpaceThatTheRestoredHostHasOtherwise(t *testing.T) {
	deleting := func(o *v1alpha1.CloudSpace) { o.DeletionTimestamp = &metav1.Time{Time: noon} }
	tests := map[string]struct {
		// day is what was so in the past; seen is how the cache still has the CloudSpace.
		day         []byte
		seen        func(*v1alpha1.CloudSpace)
		gone, blind bool
	}{
		"it was not there yet":         {seen: func(o *v1alpha1.CloudSpace) { o.Finalizers = []string{v1alpha1.FinalizerCloudSpace} }, gone: true},
		"it was without our finalizer": {seen: func(o *v1alpha1.CloudSpace) { o.Finalizers = []string{v1alpha1.FinalizerCloudSpace} }},
		"it was not being deleted":     {day: upToActive, seen: deleting},
		"it was not being deleted, and caches have nothing of it any more": {day: upToActive, seen: deleting, blind: true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := newChaos(t)
			c.live(tt.day)
			c.Kinds = append(c.Kinds, &v1alpha1.CloudSpaceList{})
			seen := c.object()
			tt.seen(seen)
			if tt.gone {
				c.Others(func() error { return c.Server.Delete(t.Context(), testCloudSpace("default")) })
			}
			if tt.blind {
				c.r.Client = blind{c.Server}
			}
			c.Rests(t, func() {
				if _, err := c.r.Reconcile(t.Context(), seen); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
