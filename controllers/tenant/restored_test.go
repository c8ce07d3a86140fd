// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package tenant

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
)

// Restored to the past, the host's etcd does not have what caches still show, each for a time of its own.
func TestNothingIsDoneForATenantThatTheRestoredHostHasOtherwise(t *testing.T) {
	ready := []byte{actPass, 0, actPass, 0, actPass, 0, actCloudSpaceSays, 0, actKubeconfig, 0}
	finalized := func(o *v1alpha1.Tenant) { o.Finalizers = []string{v1alpha1.FinalizerTenant} }
	tests := map[string]struct {
		// day is what was so in the past; seen is how the cache still has the Tenant.
		day  []byte
		seen func(*v1alpha1.Tenant)
		gone bool
		// claims tells that an administrator had made a namespace for it.
		claims bool
	}{
		"it was not there yet":                              {seen: finalized, gone: true},
		"it was not there yet, a namespace made for it was": {seen: finalized, gone: true, claims: true},
		"it was without our finalizer":                      {seen: finalized},
		"it was not being deleted":                          {day: ready, seen: func(o *v1alpha1.Tenant) { o.DeletionTimestamp = &metav1.Time{Time: noon} }},
		"it was another one, which was being deleted": {day: ready, seen: func(o *v1alpha1.Tenant) {
			o.UID, o.DeletionTimestamp = "uid-before", &metav1.Time{Time: noon}
		}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := newChaos(t)
			c.live(tt.day)
			c.Kinds = append(c.Kinds, &v1alpha1.TenantList{}, &v1alpha1.TenantQuotaList{})
			seen := c.tenant()
			tt.seen(seen)
			if tt.gone {
				c.Others(func() error { return c.Server.Delete(t.Context(), testTenant()) })
			}
			if tt.claims {
				c.Others(func() error {
					return c.Server.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
						Name: "tenant-alice-default", Labels: map[string]string{v1alpha1.LabelTenant: "alice-default"},
					}})
				})
			}
			c.Rests(t, func() {
				if _, err := c.r.Reconcile(t.Context(), seen); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
