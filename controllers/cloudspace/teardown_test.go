// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package cloudspace

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
)

// A release is waited for as long as a deadline says, whatever the clock of the operator does meanwhile.
func TestReleasesAreOverdueByEitherClock(t *testing.T) {
	const deadline = 2 * time.Minute
	tests := map[string]struct {
		// asked is when the API server says the deletion was asked for, noticed when our own clock said so; now is noon.
		asked, noticed time.Duration
		unnoticed      bool
		want           bool
	}{
		"just asked for":                           {unnoticed: true},
		"the last moment":                          {asked: -deadline, noticed: -deadline},
		"a moment later":                           {asked: -deadline - 1, noticed: -deadline, want: true},
		"asked for while no operator ran":          {asked: -time.Hour, unnoticed: true, want: true},
		"our clock is an hour behind":              {asked: time.Hour, noticed: -time.Minute},
		"our clock is an hour behind, time passed": {asked: time.Hour, noticed: -deadline - 1, want: true},
		"our clock jumped back a little":           {asked: time.Minute, noticed: time.Minute},
		"our clock jumped back an hour":            {asked: time.Hour, noticed: time.Hour, want: true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := &Reconciler{Clock: clocktesting.NewFakePassiveClock(noon)}
			object := testCloudSpace("default", func(c *v1alpha1.CloudSpace) {
				c.DeletionTimestamp = &metav1.Time{Time: noon.Add(tt.asked)}
				if !tt.unnoticed {
					c.Status.Timeline = []v1alpha1.PhaseTransition{
						{Phase: "Active", Time: metav1.NewTime(noon.Add(-24 * time.Hour))}, {Phase: "Deleting", Time: metav1.NewTime(noon.Add(tt.noticed))},
					}
				}
			})
			if got := r.overdue(grantedScope(object), deadline); got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}
