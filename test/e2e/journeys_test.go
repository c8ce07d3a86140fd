//go:build e2e

// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import "testing"

func TestJourneys(t *testing.T) {
	host := connect(t)
	host.removeTenants("alice-default", "bob-default", "carol")
	t.Run("what fails says why, and is mended on demand", host.failure)
	t.Run("a sign-up ends in a CloudSpace that works", host.signUp)
	t.Run("neighbours are apart", host.neighbours)
	t.Run("one Kustomization brings a customer with everything", host.gitOps)
	t.Run("the operator tells of itself", host.metrics)
	t.Run("a deleted Tenant leaves nothing", host.deletion)
}
