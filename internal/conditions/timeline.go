// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package conditions

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
)

// pending is what every object was from its creation to its first pass, which may go beyond it at once.
const pending = "Pending"

// Enter adds a phase to a timeline when it is not the one the object is in. A timeline begins with Pending at the creation of
// the object. The oldest entries go when it is full.
func Enter(timeline []v1alpha1.PhaseTransition, phase string, created metav1.Time, now time.Time) []v1alpha1.PhaseTransition {
	next := append([]v1alpha1.PhaseTransition{}, timeline...)
	if len(next) == 0 {
		next = append(next, v1alpha1.PhaseTransition{Phase: pending, Time: created})
	}
	if next[len(next)-1].Phase != phase {
		// A clock that jumped back does not make it go back.
		entered := metav1.NewTime(now)
		if last := next[len(next)-1].Time; entered.Before(&last) {
			entered = last
		}
		next = append(next, v1alpha1.PhaseTransition{Phase: phase, Time: entered})
	}
	return next[max(0, len(next)-v1alpha1.MaxTimeline):]
}
