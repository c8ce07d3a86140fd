// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package conditions

import (
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
)

func TestEnter(t *testing.T) {
	entry := func(phase string) v1alpha1.PhaseTransition {
		return v1alpha1.PhaseTransition{Phase: phase, Time: metav1.NewTime(earlier)}
	}
	now := func(phase string) v1alpha1.PhaseTransition {
		return v1alpha1.PhaseTransition{Phase: phase, Time: metav1.NewTime(noon)}
	}
	created := earlier.Add(-time.Hour)
	born := v1alpha1.PhaseTransition{Phase: "Pending", Time: metav1.NewTime(created)}
	ahead := v1alpha1.PhaseTransition{Phase: "Pending", Time: metav1.NewTime(noon.Add(time.Hour))}
	numbered := func(from, to int) (timeline []v1alpha1.PhaseTransition) {
		for i := from; i <= to; i++ {
			timeline = append(timeline, entry(strconv.Itoa(i)))
		}
		return timeline
	}
	tests := map[string]struct {
		timeline []v1alpha1.PhaseTransition
		phase    string
		want     []v1alpha1.PhaseTransition
	}{
		"the first phase begins the timeline":                {phase: "Pending", want: []v1alpha1.PhaseTransition{born}},
		"a first phase beyond Pending was Pending until now": {phase: "Failed", want: []v1alpha1.PhaseTransition{born, now("Failed")}},
		"a new phase is added at the end":                    {timeline: []v1alpha1.PhaseTransition{entry("Pending")}, phase: "Active", want: []v1alpha1.PhaseTransition{entry("Pending"), now("Active")}},
		"the phase it is in adds nothing":                    {timeline: []v1alpha1.PhaseTransition{entry("Pending")}, phase: "Pending", want: []v1alpha1.PhaseTransition{entry("Pending")}},
		"a phase of before is entered again":                 {timeline: []v1alpha1.PhaseTransition{entry("A"), entry("B")}, phase: "A", want: []v1alpha1.PhaseTransition{entry("A"), entry("B"), now("A")}},
		"a clock that jumped back does not make it go back":  {timeline: []v1alpha1.PhaseTransition{ahead}, phase: "Active", want: []v1alpha1.PhaseTransition{ahead, {Phase: "Active", Time: ahead.Time}}},
		"the twentieth entry keeps all":                      {timeline: numbered(1, 19), phase: "new", want: append(numbered(1, 19), now("new"))},
		"the twenty-first pushes out the oldest":             {timeline: numbered(1, 20), phase: "new", want: append(numbered(2, 20), now("new"))},
		"a full timeline that does not change stays":         {timeline: numbered(1, 20), phase: "20", want: numbered(1, 20)},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			given := append([]v1alpha1.PhaseTransition{}, tt.timeline...)
			if diff := cmp.Diff(tt.want, Enter(tt.timeline, tt.phase, metav1.NewTime(created), noon)); diff != "" {
				t.Errorf("timeline (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(given, append([]v1alpha1.PhaseTransition{}, tt.timeline...)); diff != "" {
				t.Errorf("the timeline that was given is altered:\n%s", diff)
			}
		})
	}
}
