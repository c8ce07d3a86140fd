// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// onlyOnce complains of what was made or deleted more than once.
func onlyOnce(t *testing.T, all []moment) {
	t.Helper()
	for c, n := range tally(all) {
		if (c.verb == "create" || c.verb == "delete") && n > 1 {
			t.Errorf("%s %s %s/%s was asked for %d times", c.verb, c.resource, c.namespace, c.name, n)
		}
	}
}

// Caches that are behind by more than a pass takes make the operator wait: nothing is made or deleted twice, and nothing too early.
func TestCachesThatAreBehindMakeNothingTwice(t *testing.T) {
	t.Parallel()
	const id = ofFaults + "behind"
	p := startProcess(t, &process{id: id, view: view{lag: 700 * time.Millisecond}})
	inventory, half := upAndDown(t, p)
	sameAsUndisturbed(t, inventory)
	all := p.calls.since(0)
	onlyOnce(t, moments(id, all[:half]))
	onlyOnce(t, moments(id, all[half:]))
	if slices.ContainsFunc(all[:half], func(c call) bool { return c.verb == "delete" }) {
		t.Error("something was deleted on the way up")
	}
}

// An operator that has just begun may be shown a past in which nothing was made yet. It does not make anything a second time, and
// what it is to take down it finds all the same.
func TestCachesThatBeginEmptyLoseNothing(t *testing.T) {
	t.Parallel()
	const id = ofFaults + "blind"
	first := startProcess(t, &process{id: id})
	object := reach(t, create(t, tenant(id)), "Ready")
	first.end(t)
	before, asked := versionsOf(t, id), flux.times("cloudspace-"+id)
	second := startProcess(t, &process{id: id, view: view{lag: time.Second, blind: true}})
	asksFluxAgain(t, id, asked)
	// The Tenant and the CloudSpace may say what the past looked like.
	sameChildren(t, id, before, versionsOf(t, id))
	second.end(t)
	startProcess(t, &process{id: id, view: view{lag: time.Second, blind: true}})
	remove(t, object)
	if found := leftovers(t, id); len(found) > 0 {
		t.Errorf("left are %s", strings.Join(found, ", "))
	}
}

// Two operators that both think they lead do the work of one: no phase is entered twice, nothing is made twice, nothing is left.
func TestTwoLeadersDoTheWorkOfOne(t *testing.T) {
	t.Parallel()
	const id = ofFaults + "leaders"
	first := startProcess(t, &process{id: id})
	startProcess(t, &process{id: id})
	goUp(t, id)
	object, space := reach(t, tenant(id), "Ready"), get(t, cloudSpace(id, "default"))
	sameAsUndisturbed(t, inventoryOf(t, id))
	for _, owner := range []client.Object{object, space} {
		phases := statuses.phases(t, owner)
		if sets.New(phases...).Len() != len(phases) {
			t.Errorf("%T went through %v", owner, phases)
		}
		seen := map[string]bool{}
		for _, version := range statuses.versions(owner) {
			conditions := summaryOf(version)
			if seen[conditions] {
				t.Errorf("%T said twice, and something else in between: %s", owner, conditions)
			}
			seen[conditions] = true
		}
	}
	if made := len(moments(id, first.calls.since(0))); made > 2*len(undisturbed(t).up) {
		t.Errorf("one of them made %d requests, one alone makes %d", made, len(undisturbed(t).up))
	}
	goDown(t, id)
	if found := leftovers(t, id); len(found) > 0 {
		t.Errorf("left are %s", strings.Join(found, ", "))
	}
}

// summaryOf is what the conditions of an object say, without times.
func summaryOf(object client.Object) string {
	var said []string
	for _, c := range conditionsOf(object) {
		said = append(said, strings.Join([]string{c.Type, string(c.Status), c.Reason, c.Message}, " "))
	}
	return strings.Join(said, "; ")
}
