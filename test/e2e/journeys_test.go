//go:build e2e

// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	"github.com/tantilium/cloud-runner/test/attacks"
)

// everyTenant is each that a journey creates.
var everyTenant = []string{
	"alice-default", "bob-default", "carol", "dave", "erin", "frank", "grace", "heidi", "ivan", balanced, hosted, late, "judy-default", "kim-default",
	attacks.Own, attacks.Foreign, "laura", "mike", withFifty, afterSnapshot,
}

func TestJourneys(t *testing.T) {
	host := connect(t)
	host.removeTenants(t, everyTenant...)
	t.Run("what fails says why, and is mended on demand", host.failure)
	t.Run("a new minor version reaches one CloudSpace after the other", host.upgrade)
	t.Run("a sign-up ends in a CloudSpace that works", host.signUp)
	t.Run("neighbours are apart", host.neighbours)
	t.Run("a tenant has no more than its quota", host.tenantQuota)
	t.Run("a CloudSpace keeps to its quotas", host.quotas)
	t.Run("no packet passes between CloudSpaces, or to the host", host.isolation)
	t.Run("a stolen token of a syncer does little", host.stolenToken)
	t.Run("people sign in and see what is theirs", host.identities)
	t.Run("everybody may do in the view what is written down, and no more", host.attacks)
	t.Run("nobody misses anything while replicas of the view are killed", host.viewReplicasKilled)
	t.Run("one Kustomization brings a customer with everything", host.gitOps)
	t.Run("CloudSpaces are reached from outside", host.endpoints)
	t.Run("a control plane outlives the loss of members", host.highAvailability)
	t.Run("the operator tells of itself", host.metrics)
	t.Run("every way of installing is taken", host.everyWayInstalls)
	t.Run("a support bundle has no secret in it", host.supportBundle)
	t.Run("bad days of CloudSpaces, all at once", func(t *testing.T) {
		t.Run("a control plane that is killed comes back with its data", host.controlPlaneKilled)
		t.Run("a Tenant of the same name has nothing of the one before", host.recreation)
		t.Run("a foreign namespace is refused and left alone", host.foreignNamespace)
		t.Run("an object that is held keeps the name, and is named", host.foreignFinalizer)
		t.Run("what is removed by hand comes back", host.removedByHand)
	})
	t.Run("CloudSpaces run without the chart's source, and new ones wait", host.chartSourceDown)
	t.Run("the host's API server is killed in mid-provisioning", host.apiServerKilled)
	t.Run("the host's etcd is restored from a snapshot", host.restored)
	t.Run("the operator is killed at each step up and down", host.operatorKilled)
	t.Run("an operator that is cut off is taken over", host.leaderCutOff)
	t.Run("without Flux nothing is uninstalled, and that is said", host.helmControllerStopped)
	t.Run("secrets are in Secrets alone", host.secretsAreNowhereElse)
	t.Run("a Tenant goes with fifty CloudSpaces", host.fiftyAtOnce)
	t.Run("a deleted Tenant leaves nothing", host.deletion)
}
