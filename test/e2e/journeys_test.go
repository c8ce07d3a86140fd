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
	host.tell(t, t.Run("what fails says why, and is mended on demand", host.failure))
	host.tell(t, t.Run("a new minor version reaches one CloudSpace after the other", host.upgrade))
	host.tell(t, t.Run("a sign-up ends in a CloudSpace that works", host.signUp))
	host.tell(t, t.Run("neighbours are apart", host.neighbours))
	host.tell(t, t.Run("a tenant has no more than its quota", host.tenantQuota))
	host.tell(t, t.Run("a CloudSpace keeps to its quotas", host.quotas))
	host.tell(t, t.Run("no packet passes between CloudSpaces, or to the host", host.isolation))
	host.tell(t, t.Run("a stolen token of a syncer does little", host.stolenToken))
	host.tell(t, t.Run("people sign in and see what is theirs", host.identities))
	host.tell(t, t.Run("everybody may do in the view what is written down, and no more", host.attacks))
	host.tell(t, t.Run("nobody misses anything while replicas of the view are killed", host.viewReplicasKilled))
	host.tell(t, t.Run("one Kustomization brings a customer with everything", host.gitOps))
	host.tell(t, t.Run("CloudSpaces are reached from outside", host.endpoints))
	host.tell(t, t.Run("a control plane outlives the loss of members", host.highAvailability))
	host.tell(t, t.Run("the operator tells of itself", host.metrics))
	host.tell(t, t.Run("every way of installing is taken", host.everyWayInstalls))
	host.tell(t, t.Run("a support bundle has no secret in it", host.supportBundle))
	host.tell(t, t.Run("bad days of CloudSpaces, all at once", func(t *testing.T) {
		t.Run("a control plane that is killed comes back with its data", host.controlPlaneKilled)
		t.Run("a Tenant of the same name has nothing of the one before", host.recreation)
		t.Run("a foreign namespace is refused and left alone", host.foreignNamespace)
		t.Run("an object that is held keeps the name, and is named", host.foreignFinalizer)
		t.Run("what is removed by hand comes back", host.removedByHand)
	}))
	host.tell(t, t.Run("CloudSpaces run without the chart's source, and new ones wait", host.chartSourceDown))
	host.tell(t, t.Run("the host's API server is killed in mid-provisioning", host.apiServerKilled))
	host.tell(t, t.Run("the host's etcd is restored from a snapshot", host.restored))
	host.tell(t, t.Run("the operator is killed at each step up and down", host.operatorKilled))
	host.tell(t, t.Run("an operator that is cut off is taken over", host.leaderCutOff))
	host.tell(t, t.Run("without Flux nothing is uninstalled, and that is said", host.helmControllerStopped))
	host.tell(t, t.Run("secrets are in Secrets alone", host.secretsAreNowhereElse))
	host.tell(t, t.Run("a Tenant goes with fifty CloudSpaces", host.fiftyAtOnce))
	host.tell(t, t.Run("a deleted Tenant leaves nothing", host.deletion))
}
