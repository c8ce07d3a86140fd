// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// moment is one request of the operator in the life of a tenant: the nth of its kind. The tenant's id is left out of names.
type moment struct {
	call
	nth int
}

func (m moment) String() string {
	return fmt.Sprintf("%s %s %s/%s, time %d", m.verb, m.resource, m.namespace, m.name, m.nth)
}

// ofAnybody gives a call without the id of the tenant that it is about.
func (c call) ofAnybody(id string) call {
	c.namespace, c.name = strings.ReplaceAll(c.namespace, id, "ID"), strings.ReplaceAll(c.name, id, "ID")
	return c
}

// moments counts the calls about a tenant.
func moments(id string, made []call) []moment {
	seen := map[call]int{}
	var found []moment
	for _, c := range made {
		if c.about(id) && !c.standing() {
			c = c.ofAnybody(id)
			seen[c]++
			found = append(found, moment{c, seen[c]})
		}
	}
	return found
}

// blow is what happens to the operator at a request. It is dealt once.
type blow func(p *process, send func() (*http.Response, error)) (*http.Response, error)

var blows = map[string]blow{
	"before": func(p *process, _ func() (*http.Response, error)) (*http.Response, error) {
		p.die()
		return nil, errDead
	},
	"after": func(p *process, send func() (*http.Response, error)) (*http.Response, error) {
		answer, err := send()
		p.die()
		if err == nil {
			err = answer.Body.Close()
		}
		return nil, fmt.Errorf("%w: %w", errDead, err)
	},
	"lost": func(_ *process, send func() (*http.Response, error)) (*http.Response, error) {
		answer, err := send()
		if err == nil {
			err = answer.Body.Close()
		}
		return nil, fmt.Errorf("the answer is lost: %w: %w", context.DeadlineExceeded, err)
	},
}

// dealer deals blows at moments, each once, whichever process of the tenant comes to it.
type dealer struct {
	p *process

	mu   sync.Mutex
	seen map[call]int
	due  map[moment]blow
}

// deal is an intercept.
func (d *dealer) deal(made call, send func() (*http.Response, error)) (*http.Response, error) {
	if strike := d.comesTo(made.ofAnybody(d.p.id)); strike != nil {
		return strike(d.p, send)
	}
	return send()
}

func (d *dealer) comesTo(made call) blow {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.seen[made]++
	now := moment{made, d.seen[made]}
	strike := d.due[now]
	delete(d.due, now)
	return strike
}

// left are the moments that have not come.
func (d *dealer) left() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var names []string
	for m := range d.due {
		names = append(names, m.String())
	}
	return names
}

func startDealer(t *testing.T, id string, due map[moment]blow) *dealer {
	t.Helper()
	d := &dealer{p: &process{id: id}, seen: map[call]int{}, due: due}
	d.p.intercept = d.deal
	startProcess(t, d.p)
	return d
}

// life is what a tenant goes through: the requests on its way up and down, and what stands in between.
type life struct {
	up, down  []moment
	inventory []string
}

// wholeLife takes a tenant up and down, stage by stage, with an operator that is dealt blows.
func wholeLife(t *testing.T, id string, due map[moment]blow) life {
	t.Helper()
	d := startDealer(t, id, due)
	inventory, half := upAndDown(t, d.p)
	if left := d.left(); len(left) > 0 {
		t.Errorf("it never came to %s", strings.Join(left, "; "))
	}
	all := d.p.calls.since(0)
	return life{moments(id, all[:half]), moments(id, all[half:]), inventory}
}

// undisturbed is the life of a tenant without any fault; all tests share it.
func undisturbed(t *testing.T) life {
	t.Helper()
	theUndisturbed.Lock()
	defer theUndisturbed.Unlock()
	if theUndisturbed.up == nil {
		theUndisturbed.life = wholeLife(t, ofFaults+"none", nil)
	}
	return theUndisturbed.life
}

var theUndisturbed struct {
	sync.Mutex
	life
}

// upAndDown takes a tenant through all stages. It gives what stood when it was ready, and how many calls the operator had made then.
func upAndDown(t *testing.T, p *process) (inventory []string, half int) {
	t.Helper()
	goUp(t, p.id)
	reach(t, tenant(p.id), "Ready")
	inventory, half = inventoryOf(t, p.id), p.calls.mark()
	goDown(t, p.id)
	if found := leftovers(t, p.id); len(found) > 0 {
		t.Errorf("left are %s", strings.Join(found, ", "))
	}
	return inventory, half
}

// inventoryOf names all that stands of a tenant, without the tenant's id.
func inventoryOf(t *testing.T, id string) []string {
	t.Helper()
	inventory := leftovers(t, id)
	for i := range inventory {
		inventory[i] = strings.ReplaceAll(inventory[i], id, "ID")
	}
	slices.Sort(inventory)
	return inventory
}

// The operator may end at any moment: before any of its requests, after any of them was carried out and before it knew, and any
// answer may be lost. What comes of it is the same: all that belongs to the tenant, nothing else, and in the end nothing.
func TestEndingAtEveryRequestChangesNothing(t *testing.T) {
	t.Parallel()
	want := undisturbed(t)
	for i := range max(len(want.up), len(want.down)) {
		for when, strike := range blows {
			due := map[moment]blow{}
			var names []string
			for _, way := range [][]moment{want.up, want.down} {
				if i < len(way) {
					due[way[i]] = strike
					names = append(names, way[i].String())
				}
			}
			t.Run(when+" "+strings.Join(names, " and "), func(t *testing.T) {
				t.Parallel()
				got := wholeLife(t, fmt.Sprintf("%s%s-%02d", ofFaults, when, i), due)
				sameAsUndisturbed(t, got.inventory)
			})
		}
	}
}

func sameAsUndisturbed(t *testing.T, inventory []string) {
	t.Helper()
	if diff := cmp.Diff(undisturbed(t).inventory, inventory); diff != "" {
		t.Errorf("what stands when it is ready (-undisturbed +this):\n%s", diff)
	}
}
