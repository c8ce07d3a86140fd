// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package cloudspace

import (
	"strings"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/client-go/tools/events"
)

func TestAMendedReleaseIsToldAndCounted(t *testing.T) {
	tests := map[string]struct {
		release *helmv2.HelmRelease
		cause   string
		words   string
	}{
		"failed":       {release(with(says("Ready", "False", "InstallFailed", "no"))), "Failed", "had failed"},
		"given up":     {release(with(says("Ready", "False", "InstallFailed", "no"), says("Stalled", "True", "RetriesExceeded", "x"))), "Exhausted", "had been given up by Flux"},
		"locked":       {release(with(says("Released", "False", "PendingRelease", "no"), says("Stalled", "True", "RetriesExceeded", "x"))), "Locked", "was locked"},
		"says nothing": {release(func(r *helmv2.HelmRelease) { r.Status.Conditions = nil }), "Failed", "had failed"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			recorder := events.NewFakeRecorder(1)
			counter := mended.WithLabelValues(roleFlux, tt.cause)
			before := testutil.ToFloat64(counter)
			(&Reconciler{Recorder: recorder}).tellMended(grantedScope(testCloudSpace("default")), roleFlux, tt.release)
			if got := testutil.ToFloat64(counter) - before; got != 1 {
				t.Errorf("counted %v times", got)
			}
			if told := <-recorder.Events; !strings.HasPrefix(told, "Normal ReleaseMended ") || !strings.Contains(told, tt.words) {
				t.Errorf("told %q", told)
			}
		})
	}
}
