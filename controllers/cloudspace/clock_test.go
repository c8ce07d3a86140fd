// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package cloudspace

import (
	"errors"
	"strings"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	configv1alpha1 "github.com/tantilium/cloud-runner/apis/config/v1alpha1"
	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
	"github.com/tantilium/cloud-runner/internal/retry"
	"github.com/tantilium/cloud-runner/internal/step"
)

// The clock shows noon, and then noon of the day before: what was written down at noon, by whomever, must keep nothing waiting for that
// day. Each of these subtracts a time that was kept from the one that the clock shows.
func TestAClockThatJumpsBackByADayStopsNothing(t *testing.T) {
	dayBefore := noon.Add(-day)
	failing := func(at time.Time, next time.Duration) *v1alpha1.CloudSpace {
		return testCloudSpace("default", func(c *v1alpha1.CloudSpace) {
			c.Generation, c.Status.ObservedGeneration = 1, 1
			c.Status.Retry = v1alpha1.RetryStatus{
				Attempts: 3, NextRetryTime: &metav1.Time{Time: at.Add(next)},
				LastError: &v1alpha1.RetryError{Step: "NamespaceReady", Reason: "ReconcileError", Message: "boom", Class: "Transient"},
			}
			c.Status.Conditions = []metav1.Condition{{Type: "ControlPlaneReady", Status: metav1.ConditionFalse, Reason: "Starting", LastTransitionTime: metav1.NewTime(at)}}
		})
	}
	tests := map[string]func(t *testing.T) bool{
		"a call that failed is made again": func(*testing.T) bool {
			return holdOff(failing(noon, time.Minute), retry.Backoff{Base: time.Second, Max: 5 * time.Minute}, dayBefore) == 0
		},
		"deadlines, and the patience with what does not start, begin anew": func(t *testing.T) bool {
			t.Helper()
			s := newScope(failing(noon, time.Minute))
			r := &Reconciler{Platform: testPlatform(t)}
			status := newStatus(s, outcomes(t, r, map[string]error{"ControlPlaneReady": step.Wait("Starting", "waiting")}), dayBefore)
			return meta.FindStatusCondition(status.Conditions, "ControlPlaneReady").LastTransitionTime.Equal(&metav1.Time{Time: dayBefore})
		},
		"Flux is asked to put drift right": func(t *testing.T) bool {
			t.Helper()
			w := newDriftWorld(t, nil)
			_, err := w.pass(time.Second)
			w.change(&appsv1.Deployment{}, regenerate)
			s, errThen := w.pass(-day)
			return errors.Join(err, errThen) == nil && w.asked == 1 && s.comeBack == 0
		},
		"Flux is asked once more, when it has answered": func(t *testing.T) bool {
			t.Helper()
			w := newDriftWorld(t, nil)
			_, err := w.pass(time.Second)
			w.change(&appsv1.Deployment{}, regenerate)
			_, errThen := w.pass(time.Minute)
			w.handled()
			w.status.Look = look(w.release)
			_, errLast := w.pass(-day)
			return errors.Join(err, errThen, errLast) == nil && w.asked == 2
		},
		"a chart is asked for": func(*testing.T) bool {
			chart := &sourcev1.HelmChart{}
			chart.Annotations = map[string]string{"reconcile.fluxcd.io/requestedAt": noon.Format(time.RFC3339Nano)}
			return !chartAsked(chart, dayBefore)
		},
		"what holds a deletion is told": func(*testing.T) bool {
			release := &helmv2.HelmRelease{}
			release.Finalizers, release.DeletionTimestamp = []string{helmv2.HelmReleaseFinalizer}, &metav1.Time{Time: noon}
			return strings.Contains(waitsFor("it", release, dayBefore), "does it run?")
		},
		"a release is not waited for when its time has passed": func(*testing.T) bool {
			r := &Reconciler{Clock: clocktesting.NewFakePassiveClock(dayBefore)}
			s := newScope(testCloudSpace("default", func(c *v1alpha1.CloudSpace) {
				c.DeletionTimestamp = &metav1.Time{Time: noon}
				c.Status.Timeline = []v1alpha1.PhaseTransition{{Phase: "Deleting", Time: metav1.NewTime(noon)}}
			}))
			return r.overdue(s, time.Minute)
		},
		"a turn that was given and not taken is free": func(t *testing.T) bool {
			t.Helper()
			f := newFleet(t, configv1alpha1.Rollout{MaxConcurrent: 1}, "a", "b")
			first := f.asks("a", rolledBySpec)
			f.clock.SetTime(dayBefore)
			return first == "begins" && f.asks("b", rolledBySpec) == "begins"
		},
		"a turn that was taken keeps nobody": func(t *testing.T) bool {
			t.Helper()
			f := newFleet(t, configv1alpha1.Rollout{MaxConcurrent: 1}, "a", "b")
			f.rolls("a", rolledBySpec)
			f.clock.SetTime(dayBefore)
			return f.asks("b", rolledBySpec) == "begins"
		},
		"one that waited and is not heard of keeps nobody": func(t *testing.T) bool {
			t.Helper()
			f := newFleet(t, configv1alpha1.Rollout{MaxConcurrent: 1}, "a", "b", "c")
			f.rolls("a", rolledBySpec)
			f.asks("b", rolledBySpec)
			f.rolls("a", "")
			f.clock.SetTime(dayBefore)
			return f.asks("c", rolledBySpec) == "begins"
		},
		"the host is asked for its version": func(t *testing.T) bool {
			t.Helper()
			server, clock := &discovered{version: "v1.36.3"}, clocktesting.NewFakePassiveClock(noon)
			host := &DiscoveredHost{Client: server, Clock: clock}
			_, err := host.Minor(t.Context())
			clock.SetTime(dayBefore)
			_, errThen := host.Minor(t.Context())
			return errors.Join(err, errThen) == nil && server.asked == 2
		},
		"a kubeconfig is warned of when its time comes": func(*testing.T) bool {
			expires := metav1.NewTime(noon.Add(7 * day))
			return nextWarning(v1alpha1.KubeconfigStatus{Expires: &expires}, dayBefore) == day
		},
		"what is used is told": func(*testing.T) bool { return usageWait(&metav1.Time{Time: noon}, dayBefore) <= 0 },
		"no metric goes back":  func(*testing.T) bool { return seconds(metav1.NewTime(noon), dayBefore) == 0 },
	}
	for name, getsOn := range tests {
		t.Run(name, func(t *testing.T) {
			if !getsOn(t) {
				t.Error("it does not")
			}
		})
	}
}
