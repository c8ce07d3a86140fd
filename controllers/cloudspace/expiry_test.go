// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package cloudspace

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
)

// The days of a kubeconfig that nobody renews: what stands in status, and when it is looked at next.
func TestAKubeconfigThatIsNotRenewedIsWarnedOf(t *testing.T) {
	tests := map[string]struct {
		left     time.Duration
		want     v1alpha1.KubeconfigWarning
		wantNext time.Duration
	}{
		"a year before":               {365 * day, "", 335 * day},
		"a moment before the first":   {30*day + time.Second, "", time.Second},
		"the first":                   {30 * day, "ExpiresIn30Days", 23 * day},
		"a moment before the second":  {7*day + time.Second, "ExpiresIn30Days", time.Second},
		"the second":                  {7 * day, "ExpiresIn7Days", 7 * day},
		"a moment before the end":     {time.Second, "ExpiresIn7Days", time.Second},
		"the end":                     {0, "Expired", 0},
		"long after, nothing is next": {-365 * day, "Expired", 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			ends := metav1.NewTime(noon.Add(tt.left))
			if got := warningOf(ends.Time, noon); got != tt.want {
				t.Errorf("warning %q, want %q", got, tt.want)
			}
			if got := nextWarning(v1alpha1.KubeconfigStatus{Expires: &ends}, noon); got != tt.wantNext {
				t.Errorf("next in %s, want %s", got, tt.wantNext)
			}
		})
	}
	if got := nextWarning(v1alpha1.KubeconfigStatus{}, noon); got != 0 {
		t.Errorf("without a kubeconfig it is looked at in %s", got)
	}
}

// Each warning is told once, over all passes and restarts until the kubeconfig is renewed.
func TestEachWarningIsToldOnce(t *testing.T) {
	recorder := events.NewFakeRecorder(100)
	r := &Reconciler{Recorder: recorder}
	object := testCloudSpace("default")
	ends := noon.Add(31 * day)
	for at := range 40 {
		now := noon.Add(time.Duration(at) * day)
		if at == 35 {
			ends = now.Add(365 * day)
		}
		s := grantedScope(object)
		s.observed.credentials, s.observed.kubeconfig = &credentials{expires: ends}, ownSecret(s)
		before := *object.Status.DeepCopy()
		object.Status = newStatus(s, nil, now)
		r.warnOfExpiry(object, before)
	}
	if told := len(recorder.Events); told != 3 {
		t.Errorf("told %d times, want 3", told)
	}
	if warning := object.Status.Kubeconfig.Warning; warning != "" {
		t.Errorf("after it was renewed it says %s", warning)
	}
}
