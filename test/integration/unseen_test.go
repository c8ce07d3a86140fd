// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import "testing"

// GitOps tools ask kstatus whether what they applied is ready. An object that the operator has not looked at yet must not count as
// such: what the API server answers to its creation says so.
func TestAnObjectThatNobodyHasLookedAtIsNotReady(t *testing.T) {
	t.Parallel()
	made := create(t, tenant("unseen"))
	if made.Status.ObservedGeneration != -1 {
		t.Errorf("a Tenant is created with observedGeneration %d, want -1", made.Status.ObservedGeneration)
	}
	reach(t, made, "Ready")
	extra := create(t, cloudSpace("unseen", "extra"))
	if extra.Status.ObservedGeneration != -1 {
		t.Errorf("a CloudSpace is created with observedGeneration %d, want -1", extra.Status.ObservedGeneration)
	}
	reach(t, extra, "Active")
}
