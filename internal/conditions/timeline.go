// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package conditions

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
)

// Enter adds a phase to a timeline when it is not the one the object is in. The oldest entries go when it is full.
func Enter(timeline []v1alpha1.PhaseTransition, phase string, now time.Time) []v1alpha1.PhaseTransition {
	if n := len(timeline); n > 0 && timeline[n-1].Phase == phase {
		return timeline
	}
	next := append([]v1alpha1.PhaseTransition{}, timeline...)
	next = append(next, v1alpha1.PhaseTransition{Phase: phase, Time: metav1.NewTime(now)})
	return next[max(0, len(next)-v1alpha1.MaxTimeline):]
}
