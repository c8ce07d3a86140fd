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
	journey := func(name string, of func(*testing.T)) {
		t.Run(name, func(t *testing.T) {
			t.Cleanup(func() { host.tell(t) })
			of(t)
		})
	}
	journey("what fails says why, and is mended on demand", host.failure)
	journey("a new minor version reaches one CloudSpace after the other", host.upgrade)
	journey("a sign-up ends in a CloudSpace that works", host.signUp)
	journey("neighbours are apart", host.neighbours)
	journey("a tenant has no more than its quota", host.tenantQuota)
	journey("a CloudSpace keeps to its quotas", host.quotas)
	journey("no packet passes between CloudSpaces, or to the host", host.isolation)
	journey("a stolen token of a syncer does little", host.stolenToken)
	journey("people sign in and see what is theirs", host.identities)
	journey("everybody may do in the view what is written down, and no more", host.attacks)
	journey("nobody misses anything while replicas of the view are killed", host.viewReplicasKilled)
	journey("one Kustomization brings a customer with everything", host.gitOps)
	journey("CloudSpaces are reached from outside", host.endpoints)
	journey("a control plane outlives the loss of members", host.highAvailability)
	journey("the operator tells of itself", host.metrics)
	journey("every way of installing is taken", host.everyWayInstalls)
	journey("a support bundle has no secret in it", host.supportBundle)
	journey("bad days of CloudSpaces, all at once", func(t *testing.T) {
		t.Run("a control plane that is killed comes back with its data", host.controlPlaneKilled)
		t.Run("a Tenant of the same name has nothing of the one before", host.recreation)
		t.Run("a foreign namespace is refused and left alone", host.foreignNamespace)
		t.Run("an object that is held keeps the name, and is named", host.foreignFinalizer)
		t.Run("what is removed by hand comes back", host.removedByHand)
	})
	journey("CloudSpaces run without the chart's source, and new ones wait", host.chartSourceDown)
	journey("the host's API server is killed in mid-provisioning", host.apiServerKilled)
	journey("the host's etcd is restored from a snapshot", host.restored)
	journey("the operator is killed at each step up and down", host.operatorKilled)
	journey("an operator that is cut off is taken over", host.leaderCutOff)
	journey("without Flux nothing is uninstalled, and that is said", host.helmControllerStopped)
	journey("secrets are in Secrets alone", host.secretsAreNowhereElse)
	journey("a Tenant goes with fifty CloudSpaces", host.fiftyAtOnce)
	journey("a deleted Tenant leaves nothing", host.deletion)
}
