// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package cloudspace

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/events"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
	"github.com/tantilium/cloud-runner/internal/step"
)

// What goes wrong is told once, however many conditions show it, and not again in each pass.
func TestWhatGoesWrongIsToldOnce(t *testing.T) {
	notOurs := step.Terminal("NotOurs", "Namespace vcluster-alice-default exists and was not made for this object; it is left alone")
	late := step.Wait("Starting", "waiting for etcd of the control plane")
	tests := map[string]struct {
		stops string
		err   error
		// at are the times of the passes.
		at   []time.Duration
		want []string
	}{
		"somebody else's object is in the way": {
			stops: "NamespaceReady", err: notOurs, at: []time.Duration{0, time.Second, time.Hour},
			want: []string{"Warning NotOurs " + notOurs.Error()},
		},
		"a deadline passes": {
			stops: "ControlPlaneReady", err: late, at: []time.Duration{0, time.Minute, time.Hour, 2 * time.Hour},
			want: []string{"Warning Starting " + late.Error()},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			recorder := events.NewFakeRecorder(100)
			r := &Reconciler{Platform: testPlatform(t), Recorder: recorder}
			object := testCloudSpace("default")
			for _, at := range tt.at {
				s := grantedScope(object)
				before := *object.Status.DeepCopy()
				object.Status = newStatus(s, outcomes(t, r, map[string]error{tt.stops: tt.err}), noon.Add(at))
				r.announce(object, before)
			}
			var warned []string
			for len(recorder.Events) > 0 {
				if e := <-recorder.Events; e[:8] == "Warning " && e != "Warning Failed the CloudSpace is "+phaseWords(v1alpha1.CloudSpaceFailed) {
					warned = append(warned, e)
				}
			}
			if diff := cmp.Diff(tt.want, warned); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}
