// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package tenant

import (
	"testing"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
)

// Restored to the past, the host's etcd does not have what caches still show, each for a time of its own.
func TestNothingIsMadeForTenantsThatTheRestoredHostDoesNotHave(t *testing.T) {
	c := newChaos(t)
	cached := testTenant()
	cached.Finalizers = []string{v1alpha1.FinalizerTenant}
	c.Others(func() error { return c.Server.Delete(t.Context(), testTenant()) })
	before := len(c.All(t))
	if _, err := c.r.Reconcile(t.Context(), cached); err != nil {
		t.Error(err)
	}
	if made := len(c.All(t)) - before; made != 0 {
		t.Errorf("%d objects were made, want none", made)
	}
}
