// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package cloudspace

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
	"github.com/tantilium/cloud-runner/internal/retry"
)

func TestCallsThatFailedAreHeldOffUntilTheirTime(t *testing.T) {
	after := func(d time.Duration) *metav1.Time { return &metav1.Time{Time: noon.Add(d)} }
	tests := map[string]struct {
		alter func(*v1alpha1.CloudSpace)
		want  time.Duration
	}{
		"as it is":                              {want: time.Minute},
		"the last moment":                       {alter: func(c *v1alpha1.CloudSpace) { c.Status.Retry.NextRetryTime = after(1) }, want: 1},
		"its time has come":                     {alter: func(c *v1alpha1.CloudSpace) { c.Status.Retry.NextRetryTime = after(0) }},
		"its time has passed":                   {alter: func(c *v1alpha1.CloudSpace) { c.Status.Retry.NextRetryTime = after(-time.Hour) }},
		"set by a clock that was an hour ahead": {alter: func(c *v1alpha1.CloudSpace) { c.Status.Retry.NextRetryTime = after(time.Hour) }},
		"it is being tried":                     {alter: func(c *v1alpha1.CloudSpace) { c.Status.Retry.NextRetryTime = nil }},
		"nothing failed":                        {alter: func(c *v1alpha1.CloudSpace) { c.Status.Retry = v1alpha1.RetryStatus{} }},
		"no failure is known":                   {alter: func(c *v1alpha1.CloudSpace) { c.Status.Retry.LastError = nil }},
		"what went wrong is not a call: its end would not be seen": {
			alter: func(c *v1alpha1.CloudSpace) { c.Status.Retry.LastError.Reason = "InstallFailed" },
		},
		"what cannot succeed is looked at: it may be mended": {
			alter: func(c *v1alpha1.CloudSpace) { c.Status.Retry.LastError.Reason = "NotOurs" },
		},
		"the spec was changed": {alter: func(c *v1alpha1.CloudSpace) { c.Generation = 3 }},
		"a retry is asked for": {alter: func(c *v1alpha1.CloudSpace) {
			c.Annotations = map[string]string{"tenancy.kubeopera.io/retry-requested": "tuesday"}
		}},
		"the retry that was asked for was made": {
			alter: func(c *v1alpha1.CloudSpace) {
				c.Annotations = map[string]string{"tenancy.kubeopera.io/retry-requested": "monday"}
			},
			want: time.Minute,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			object := testCloudSpace("default", func(c *v1alpha1.CloudSpace) {
				c.Generation, c.Status.ObservedGeneration = 2, 2
				c.Status.Retry = v1alpha1.RetryStatus{
					Attempts: 3, NextRetryTime: after(time.Minute), LastHandledRequest: "monday",
					LastError: &v1alpha1.RetryError{Step: "NamespaceReady", Reason: "ReconcileError", Message: "boom", Class: "Transient"},
				}
			})
			if tt.alter != nil {
				tt.alter(object)
			}
			if got := holdOff(object, retry.Backoff{Base: 5 * time.Second, Max: 5 * time.Minute}, noon); got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}
